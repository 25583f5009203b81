"""The lines in the records of a log, in the order in which they end. Pure.

A line is given when its last record was read, whatever lines of other jobs and streams are open at that moment. So a
progress bar of an hour holds nothing up, and a reader that continues at the end of any line loses and repeats nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from riseml.store.logs.blocks import LogBlock
from riseml.store.logs.line_state import RecordKind, cut_text
from riseml.store.logs.read_position import LineOwner, OpenLine, ReadPosition, ReadState
from riseml.store.logs.records import DamagedPart, RecordHead, RecordRun, split_runs

_OWN_STREAM = 3
_LONGEST_STAMP = 40  # bytes of a timestamp; more is damaged
_PIECES = tuple(b"\n%c " % code for code in RecordKind.GOES_ON.codes)


class LineParser:
    """Gives the lines of successive parts of a log.

    Args:
        position: where the records begin that it gets; its open lines are known.
    """

    def __init__(self, position: ReadPosition) -> None:
        self._offset = position.offset
        # Lines are added as they begin, so that the first one is the oldest.
        state = position.state
        self._open: dict[LineOwner, OpenLine] = {} if state is None else dict(state.open_lines)
        self._damaged = 0 if state is None else state.damaged

    @property
    def position(self) -> ReadPosition:
        """Where a reader continues that has the lines of all records so far."""
        state = ReadState(dict(self._open), self._damaged) if self._open or self._damaged else None
        return ReadPosition(self._offset, self._count_open_bytes(), state)

    def read_lines(self, data: bytes) -> Iterator[LogBlock]:
        """Yield the lines that end in these whole records; lines that follow each other as one block. Where the file is
        damaged, a line says so.
        """
        for run in split_runs(data):
            if isinstance(run, DamagedPart):
                self._offset += run.size
                self._damaged += run.size
                continue
            head = run.head
            owner = LineOwner(head.job, head.stream, head.attempt)
            if self._damaged:
                yield self._note(run, f"{self._damaged:,} bytes of this log are damaged, and lines are missing here")
                self._damaged = 0
            if self._open:
                yield from self._end_lost_lines(owner)
            if head.kind is RecordKind.END and owner not in self._open:  # nearly always
                yield self._take_lines(head, run.data)
            elif head.kind is RecordKind.GOES_ON:
                self._take_pieces(owner, run)
            elif head.kind.has_text:
                yield from self._take_ends(owner, run)
            else:
                self._offset += len(run.data)
            if run.has_zeros:
                yield self._note(run, "where the job did not print the zeros before, lines are missing here")

    def _note(self, run: RecordRun, text: str) -> LogBlock:
        """Return a line of riseml itself beside the records of a run."""
        at = run.data[len(run.head.text) :].partition(b"\n")[0].partition(b" ")[0][:_LONGEST_STAMP]
        data = b"%b [riseml: %b]\n" % (at, text.encode())
        end = ReadPosition(self._offset, self._count_open_bytes())
        return LogBlock(run.head.job, _OWN_STREAM, data, self._offset, 0, end, run.head.attempt)

    def _take_lines(self, head: RecordHead, data: bytes) -> LogBlock:
        """Return whole lines as one block."""
        start = self._offset
        self._offset += len(data)
        lines = data[len(head.text) :].replace(b"\n" + head.text, b"\n")
        end = ReadPosition(self._offset, self._count_open_bytes())
        return LogBlock(head.job, head.stream, lines, start, len(head.text), end, head.attempt)

    def _take_pieces(self, owner: LineOwner, run: RecordRun) -> None:
        """Take successive pieces of one line."""
        rows = [row.partition(b" ") for row in run.rows()]
        text = b"".join(row[2] for row in rows)
        line = self._open.get(owner)
        begun = OpenLine(self._offset, rows[0][0], text)
        self._open[owner] = begun if line is None else OpenLine(line.start, line.at, text, line)
        self._offset += len(run.data)

    def _take_ends(self, owner: LineOwner, run: RecordRun) -> Iterator[LogBlock]:
        """Yield the line that the first record ends, and whole lines after it."""
        head = run.head
        end = run.data.index(b"\n") + 1
        at, _, text = run.data[len(head.text) : end - 1].partition(b" ")
        line = self._open.pop(owner, None)
        start = self._offset
        self._offset += end
        whole = OpenLine(start, at, text) if line is None else OpenLine(line.start, line.at, text, line)
        yield self._make_block(owner, whole)
        if end < len(run.data):
            yield self._take_lines(head, run.data[end:])

    def _end_lost_lines(self, owner: LineOwner) -> Iterator[LogBlock]:
        """Yield lines of earlier attempts: the last line of an attempt that was lost may never end, and the next
        attempt ends it.
        """
        lost = [
            other
            for other in self._open
            if other.attempt < owner.attempt and (other.job, other.stream) == (owner.job, owner.stream)
        ]
        for other in lost:
            yield self._make_block(other, self._open.pop(other))

    def _make_block(self, owner: LineOwner, line: OpenLine) -> LogBlock:
        data = b"%b %b\n" % (line.at, cut_text(line.join_pieces()))
        end = ReadPosition(self._offset, self._count_open_bytes())
        return LogBlock(owner.job, owner.stream, data, line.start, 0, end, owner.attempt)

    def _count_open_bytes(self) -> int:
        """Return how many bytes before the offset the oldest open line begins; 0 when none is open."""
        return self._offset - next(iter(self._open.values())).start if self._open else 0


def find_open_lines(parts: Iterable[bytes], position: ReadPosition) -> ReadPosition:
    """Return a position with the lines that are open there.

    Args:
        parts: the records from `position.open_from` to `position.offset`; the lines that end in them were given.
        position: where to continue.
    """
    parser = LineParser(ReadPosition(position.open_from))
    for data in parts:
        for _ in parser.read_lines(data):
            pass
    return replace(position, state=parser.position.state or ReadState({}, 0))


def has_pieces(data: bytes) -> bool:
    """Return True when a line may continue after its record."""
    return data[:1] in RecordKind.GOES_ON.codes or any(piece in data for piece in _PIECES)
