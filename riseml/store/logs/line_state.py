"""The states of one line while its pieces arrive: one transition function for writer, recovery and reader.

The engine delivers a line longer than 16 KiB in several frames. Each frame becomes one record of the log file, so that
the number of records with one timestamp is the number of frames that the store holds. The kind of a record says which
part of a line the frame is:

    BETWEEN --GOES_ON--> OPEN --GOES_ON--> OPEN --END--> BETWEEN     a line in pieces
    BETWEEN --END--> BETWEEN                                         a whole line
    OPEN --CUT--> CUT --DROPPED--> CUT --DROPPED_END--> BETWEEN      a line that is longer than 1 MiB
"""

from __future__ import annotations

import enum

from riseml.base.records import dataclass

LONGEST_LINE = 1 << 20  # bytes of a line that the log keeps
_CUT_MARK = b" [riseml: line cut at 1 MiB]"


class LinePhase(enum.Enum):
    """Where a stream of one job is: between two lines, in a line, or in a line whose rest is dropped."""

    BETWEEN = enum.auto()
    OPEN = enum.auto()
    CUT = enum.auto()


class RecordKind(enum.Enum):
    """Which part of a line one record is.

    `codes` are the bytes that stand for the kind in a log file, one for each stream: 0 (stdin, which no engine sends),
    1 (stdout), 2 (stderr), 3 (the engine's own messages).
    """

    END = b"0123", True  # a whole line, or the last piece of one
    GOES_ON = b"oabc", True  # a piece; the line continues in the next record of its job and stream
    CUT = b"OABC", True  # the last piece that is kept, with a mark; the line of the job continues
    DROPPED = b"pxyz", False  # a further piece of a line that was cut
    DROPPED_END = b"PXYZ", False  # the last piece of a line that was cut

    codes: bytes
    has_text: bool

    def __init__(self, codes: bytes, has_text: bool) -> None:  # noqa: FBT001  # as the members above are written
        self.codes = codes
        self.has_text = has_text


@dataclass(frozen=True, slots=True)
class LineState:
    """The state of the line that one stream of one job prints."""

    phase: LinePhase = LinePhase.BETWEEN
    size: int = 0  # bytes of the open line that the log holds

    def classify_piece(self, size: int, *, ends_line: bool) -> RecordKind:
        """Return the kind of record that the next piece of `size` bytes becomes."""
        if self.phase is LinePhase.CUT:
            return RecordKind.DROPPED_END if ends_line else RecordKind.DROPPED
        if ends_line:
            return RecordKind.END
        return RecordKind.CUT if self.size + size > LONGEST_LINE else RecordKind.GOES_ON

    def feed(self, kind: RecordKind, size: int) -> LineState:
        """Return the state after a record of this kind with `size` bytes of text.

        Each kind leads to one phase, so that a reader may begin at any record.
        """
        match kind:
            case RecordKind.END | RecordKind.DROPPED_END:
                return BETWEEN_LINES
            case RecordKind.GOES_ON:
                return LineState(LinePhase.OPEN, self.size + size)
            case RecordKind.CUT | RecordKind.DROPPED:
                return _CUT_LINE


BETWEEN_LINES = LineState()
_CUT_LINE = LineState(LinePhase.CUT)


def cut_text(text: bytes, line_size: int = 0) -> bytes:
    """Return the part of a piece that fits into its line, with a mark when a part does not fit.

    Args:
        text: the piece.
        line_size: bytes of the line before this piece.
    """
    return text if line_size + len(text) <= LONGEST_LINE else text[: LONGEST_LINE - line_size] + _CUT_MARK
