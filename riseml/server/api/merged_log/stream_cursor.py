"""The cursor of the merged stream: a client's position in each experiment, as text.

A cursor is `<event id>.<log offset>[.<lines given>]` for each experiment of the stream, joined by commas: the client
has everything up to there.
"""

from __future__ import annotations

from dataclasses import astuple

from riseml.errors import UsageError
from riseml.records import dataclass
from riseml.store.logs.blocks import ReadPosition

_MOST_EVENTS = 2**31  # the largest number that every database can store
_MOST_BYTES = 2**43  # the largest offset that every file system can seek


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """The position of the stream in one experiment."""

    event: int = 0  # id of the last event that was sent
    offset: int = 0  # where reading of the log file continues, in bytes
    lines_given: int = 0  # lines after `offset` that were sent

    @property
    def log_position(self) -> ReadPosition:
        """Where reading of the log continues."""
        return ReadPosition(self.offset, self.lines_given)

    def with_log_position(self, end: ReadPosition) -> StreamPosition:
        """Return the same position with the log sent up to `end`."""
        return StreamPosition(self.event, end.offset, end.lines_given)

    def __str__(self) -> str:
        lines = f".{self.lines_given}" if self.lines_given else ""
        return f"{self.event}.{self.offset}{lines}"


def parse_stream_cursor(text: str, count: int, *, grows: bool = False) -> tuple[StreamPosition, ...]:
    """Return the positions in the text of a cursor; an empty text begins at the beginning.

    Args:
        text: what an entry said as its `cursor`.
        count: experiments of the stream.
        grows: a search may have made experiments since the cursor was written; they begin at the beginning.

    Raises:
        UsageError: it is no cursor of such a stream.
    """
    if not text:
        return (StreamPosition(),) * count
    try:
        positions = tuple(StreamPosition(*map(int, part.split("."))) for part in text.split(","))
    except (ValueError, TypeError):
        positions = ()
    bounds = (_MOST_EVENTS, _MOST_BYTES, _MOST_BYTES)
    sound = all(0 <= part < most for one in positions for part, most in zip(astuple(one), bounds, strict=True))
    if grows and positions:
        positions += (StreamPosition(),) * (count - len(positions))
    if len(positions) != count or not sound:
        raise UsageError(f"{text[:80]!r} is not a cursor of this log", "leave it out to read from the beginning")
    return positions
