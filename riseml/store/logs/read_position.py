"""Where a reader of a log continues, and the lines that are open there. Pure.

A position never passes over a line: everything that ended before `offset` was given, and the pieces of each line that
is still open there are kept, or are read again from `open_from` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from riseml.base.names import JobName
from riseml.base.records import dataclass


class LineOwner(NamedTuple):
    """What prints one line after the other."""

    job: JobName
    stream: int  # 1: stdout, 2: stderr, 3: the engine
    attempt: int  # attempt of the job


class OpenLine(NamedTuple):
    """A line whose last piece has not come yet. It is never changed, so that readers at other places can share it."""

    start: int  # offset of its first record
    at: bytes  # timestamp of its first piece
    text: bytes  # text of its newest piece
    before: OpenLine | None = None  # the line without its newest piece; None: this is the first piece

    def join_pieces(self) -> bytes:
        """Return the text of all pieces."""
        pieces: list[bytes] = []
        line: OpenLine | None = self
        while line is not None:
            pieces.append(line.text)
            line = line.before
        return b"".join(reversed(pieces))


class ReadState(NamedTuple):
    """What a reader keeps in memory at a position. Without it, it reads the pieces of the open lines again."""

    open_lines: Mapping[LineOwner, OpenLine]  # the oldest one first
    damaged: int  # bytes before the position that hold no records


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """Where a reader continues in a log file."""

    offset: int = 0  # bytes from the beginning of the file; a record begins here, what ended before it was given
    open_bytes: int = 0  # bytes before `offset` at which the oldest line begins that is open there; 0: none is open
    state: ReadState | None = field(default=None, compare=False, repr=False)

    @property
    def open_from(self) -> int:
        """The offset at which the oldest open line begins; `offset` when no line is open."""
        return self.offset - self.open_bytes

    @property
    def lacks_open_lines(self) -> bool:
        """True when the pieces of the open lines must be read again before a reader can continue here."""
        return self.open_bytes > 0 and self.state is None

    def move_to(self, offset: int) -> ReadPosition:
        """Return the position at another record, between which and this one no line begins or ends in pieces."""
        return ReadPosition(offset, offset - self.open_from if self.open_bytes else 0)
