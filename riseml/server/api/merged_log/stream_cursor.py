"""The cursor of the merged stream: a client's position in each experiment, as text.

A cursor is `<event id>.<log offset>[.<open bytes>]` for each experiment of the stream, joined by commas: the client has
everything up to there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.store.logs.log_store import LogStore
from riseml.store.logs.read_position import ReadPosition

_POSITION = re.compile(r"[0-9]{1,18}\.[0-9]{1,18}(?:\.[0-9]{1,18})?")
_MOST_EVENTS = 2**31  # the largest number that every database can store
_MOST_BYTES = 2**43  # the largest offset that every file system can seek


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """The position of the stream in one experiment."""

    event: int = 0  # id of the last event that was sent
    offset: int = 0  # where reading of the log file continues, in bytes
    open_bytes: int = 0  # bytes before `offset` at which the oldest line begins that is open there

    @property
    def log_position(self) -> ReadPosition:
        """Where reading of the log continues."""
        return ReadPosition(self.offset, self.open_bytes)

    def with_log_position(self, end: ReadPosition) -> StreamPosition:
        """Return the same position with the log sent up to `end`."""
        return StreamPosition(self.event, end.offset, end.open_bytes)

    def __str__(self) -> str:
        open_bytes = f".{self.open_bytes}" if self.open_bytes else ""
        return f"{self.event}.{self.offset}{open_bytes}"


def parse_stream_cursor(text: str, count: int, *, grows: bool = False) -> tuple[StreamPosition, ...]:
    """Return the positions in the text of a cursor; an empty text begins at the beginning.

    Args:
        text: what an entry said as its `cursor`.
        count: experiments of the stream.
        grows: a search may have made experiments since the cursor was written; they begin at the beginning.

    Raises:
        UsageError: it is not a cursor of such a stream.
    """
    if not text:
        return (StreamPosition(),) * count
    positions = tuple(map(_parse_position, text.split(",")))
    if grows:
        positions += (StreamPosition(),) * (count - len(positions))
    sound = tuple(position for position in positions if position is not None)
    if len(sound) != len(positions) or len(sound) != count:
        raise refuse_cursor(text)
    return sound


def check_stream_cursor(text: str, positions: Iterable[tuple[int, StreamPosition]], logs: LogStore) -> None:
    """Refuse a cursor that points into the middle of a record, or behind the end of a log.

    Args:
        text: of the cursor.
        positions: keys of experiments, each with its position.
        logs: the logs of the experiments.

    Raises:
        UsageError: it is not a cursor of these logs.
    """
    for experiment, position in positions:
        log = position.log_position
        if not all(logs.is_record_start(experiment, offset) for offset in {log.offset, log.open_from}):
            raise refuse_cursor(text)


def refuse_cursor(text: str) -> UsageError:
    """Return the error of a text that is not a cursor of the log for which a client sent it."""
    return UsageError(f"{text[:80]!r} is not a cursor of this log", "leave it out to read from the beginning")


def _parse_position(text: str) -> StreamPosition | None:
    """Return the position in one experiment; None: the text is none."""
    if _POSITION.fullmatch(text) is None:
        return None
    position = StreamPosition(*map(int, text.split(".")))
    is_sound = position.event < _MOST_EVENTS and position.open_bytes <= position.offset < _MOST_BYTES
    return position if is_sound else None
