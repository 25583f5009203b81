"""The pieces in which readers get a log: successive lines of one job and stream, as one piece of bytes. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field, replace

from riseml.names import JobName
from riseml.records import dataclass
from riseml.store.logs.line_state import BETWEEN_LINES, LONGEST_LINE, LinePhase, LineState, RecordKind, cut_text
from riseml.store.logs.records import RecordHead, RecordRun, split_runs
from riseml.store.logs.report_lines import MARKER, KnownReports, holds_only_reports, split_report

# bytes of a log after the beginning of an open line, until readers get the line as it is
_LONGEST_WAIT = 2 * LONGEST_LINE
_STDOUT = 1
_PIECES = tuple(b"\n%c " % code for code in RecordKind.GOES_ON.codes)


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """Where a reader continues in a log file."""

    offset: int = 0  # bytes from the beginning of the file; a record begins here
    lines_given: int = 0  # complete lines after `offset` that the reader has already; 0 unless a line is open there


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line of a job's output."""

    job: JobName
    at: str  # timestamp of its first piece, as the engine wrote it
    stream: int  # 1: stdout, 2: stderr, 3: the engine
    text: bytes  # without its newline
    end: ReadPosition  # a reader that continues here loses and repeats nothing
    attempt: int = 1  # of the job


@dataclass(frozen=True, slots=True)
class LogBlock:
    """Lines of one job and one stream that follow each other, or reports; one at least."""

    job: JobName
    stream: int  # 1: stdout, 2: stderr, 3: the engine
    data: bytes  # `<timestamp> <text>\n` for each line
    start: int  # offset of its first record in the file, in bytes
    head_size: int  # bytes by which each record is longer than its line in `data`
    end: ReadPosition  # a reader that continues here loses and repeats nothing
    attempt: int = 1  # of the job
    is_report: bool = False  # its lines are reports of metrics, which are not shown
    report: bytes = b""  # the report after the text of its only line, such as an unfinished progress bar

    @property
    def count(self) -> int:
        """The number of lines."""
        return self.data.count(b"\n")

    @property
    def first_at(self) -> str:
        """The timestamp of the first line."""
        return self.data[: self.data.index(b" ")].decode()

    def report_rows(self) -> list[bytes]:
        """Return `<timestamp> <report>` of each report."""
        if self.is_report:
            return self.data.split(b"\n")[:-1]
        return [b"%b %b" % (self.data[: self.data.index(b" ")], self.report)] if self.report else []

    def timestamps(self) -> Iterator[str]:
        """Give the timestamp of each line."""
        return (row.partition(b" ")[0].decode() for row in self.data.split(b"\n")[:-1])

    def lines(self) -> list[OutputLine]:
        """Return each line on its own."""
        found: list[OutputLine] = []
        position = self.start
        for row in self.data.split(b"\n")[:-1]:
            position += self.head_size + len(row) + 1
            at, _, text = row.partition(b" ")
            found.append(OutputLine(self.job, at.decode(), self.stream, text, ReadPosition(position), self.attempt))
        found[-1] = replace(found[-1], end=self.end)
        return found

    def split(self, count: int) -> tuple[LogBlock, LogBlock]:
        """Return the first `count` lines, and the others; the block has more than `count` lines."""
        size = 0
        for _ in range(count):
            size = self.data.index(b"\n", size) + 1
        middle = self.start + size + count * self.head_size
        first = replace(self, data=self.data[:size], end=ReadPosition(middle))
        return first, replace(self, data=self.data[size:], start=middle)


def join_blocks(blocks: list[LogBlock]) -> LogBlock:
    """Return the lines of blocks of one job and stream as one block, which can be sent but not split."""
    return replace(blocks[-1], data=b"".join(block.data for block in blocks), start=blocks[0].start)


def find_blocks(
    data: bytes, position: ReadPosition, known: KnownReports | None = None
) -> tuple[list[LogBlock], ReadPosition]:
    """Return the complete lines and reports in whole records that begin at `position.offset`, and where to continue.

    The caller continues before an open line, and counts the lines after its beginning that it already has.
    """
    finder = _BlockFinder(position.offset, KnownReports() if known is None else known)
    for run in split_runs(data):
        finder.add_run(run)
    return finder.take_blocks(position.lines_given)


def find_report_blocks(
    data: bytes, position: ReadPosition, known: KnownReports | None = None
) -> tuple[list[LogBlock], ReadPosition]:
    """Return the reports among the records, as `find_blocks` does; fast when there are none."""
    if MARKER not in data and not position.lines_given and not _has_pieces(data):
        return [], ReadPosition(position.offset + len(data))
    blocks, end = find_blocks(data, position, known)
    return [block for block in blocks if block.is_report or block.report], end


def _has_pieces(data: bytes) -> bool:
    """Return True when a line may continue after its record."""
    return data[:1] in RecordKind.GOES_ON.codes or any(piece in data for piece in _PIECES)


@dataclass(slots=True)
class _OpenLine:
    """A line whose last piece has not come yet."""

    start: int  # offset of its first record
    at: bytes  # its first timestamp
    attempt: int  # of the job
    state: LineState = BETWEEN_LINES
    pieces: list[bytes] = field(default_factory=list)


class _BlockFinder:
    """The blocks that were found up to an offset, and the lines that are open there."""

    def __init__(self, offset: int, known: KnownReports) -> None:
        self._offset = offset
        self._known = known
        self._open: dict[tuple[JobName, int], _OpenLine] = {}  # by job and stream
        self._blocks: list[LogBlock] = []
        self._ends: list[int] = []  # the offset after the last record of each block, ascending

    def add_run(self, run: RecordRun) -> None:
        """Take the records that begin at the offset: one by one while a line is open, then as one block."""
        head, data, position = run.head, run.data, 0
        while position < len(data) and (self._open or head.kind is not RecordKind.END):
            end = data.index(b"\n", position)
            self._add_record(head, data[position + len(head.text) : end])
            position = end + 1
        if position < len(data):
            self._add_lines(head, data[position:])

    def _add_lines(self, head: RecordHead, data: bytes) -> None:
        """Take whole lines while none is open."""
        start = self._offset
        self._offset += len(data)
        lines = data[len(head.text) :].replace(b"\n" + head.text, b"\n")
        block = LogBlock(head.job, head.stream, lines, start, len(head.text), ReadPosition(self._offset), head.attempt)
        if head.stream != _STDOUT or MARKER not in lines:
            self._add_block(block)
        elif self._known.covers(start, self._offset) or holds_only_reports(lines):
            self._known.note_range(start, self._offset)
            self._add_block(replace(block, is_report=True))
        else:
            for part in _separate_reports(block):
                self._add_block(part)

    def take_blocks(self, lines_given: int) -> tuple[list[LogBlock], ReadPosition]:
        """Return the blocks without the first `lines_given` lines, and where to continue."""
        restart = self._restart()
        if restart <= self._offset - _LONGEST_WAIT and self._open:  # an endless line must not block the other jobs
            for owner, line in self._open.items():
                self._add_line(owner, line, ReadPosition(self._offset))
            restart = self._offset
        ready = self._blocks[: bisect_right(self._ends, restart)]
        while ready and lines_given:
            first = ready.pop(0)
            if first.count > lines_given:
                ready.insert(0, first.split(lines_given)[1])
            lines_given = max(0, lines_given - first.count)
        return ready, ReadPosition(restart, lines_given)

    def _add_record(self, head: RecordHead, row: bytes) -> None:
        """Take a piece of a line, or a line between the pieces of another.

        The last line of an attempt that was lost may never end: the first record of the next attempt ends it.
        """
        owner = (head.job, head.stream)
        former = self._open.get(owner)
        if former is not None and former.attempt != head.attempt:
            self._end_line(owner, former)
        start = self._offset
        self._offset += len(head.text) + len(row) + 1
        if not head.kind.has_text:
            return
        at, _, text = row.partition(b" ")
        line = self._open.setdefault(owner, _OpenLine(start, at, head.attempt))
        line.pieces.append(text)
        line.state = line.state.feed(head.kind, len(text))
        if line.state.phase is not LinePhase.OPEN:
            self._end_line(owner, line)

    def _end_line(self, owner: tuple[JobName, int], line: _OpenLine) -> None:
        del self._open[owner]
        restart = self._restart()
        given = 1 + len(self._ends) - bisect_right(self._ends, restart) if restart < self._offset else 0
        self._add_line(owner, line, ReadPosition(restart, given))

    def _add_line(self, owner: tuple[JobName, int], line: _OpenLine, end: ReadPosition) -> None:
        text = cut_text(b"".join(line.pieces))
        shown, report = split_report(text) if owner[1] == _STDOUT and MARKER in text else (text, None)
        data = b"%b %b\n" % (line.at, text if shown is None else shown)
        block = LogBlock(*owner, data, line.start, 0, end, line.attempt, is_report=shown is None)
        self._add_block(block if shown is None or report is None else replace(block, report=report))

    def _add_block(self, block: LogBlock) -> None:
        self._blocks.append(block)
        self._ends.append(self._offset)

    def _restart(self) -> int:
        """Return where to continue so that no piece of an open line is lost."""
        return min((line.start for line in self._open.values()), default=self._offset)


def _separate_reports(block: LogBlock) -> Iterator[LogBlock]:
    """Give the lines and the reports of a block as blocks of their own, in their order."""
    part, position = _PartialBlock(block, block.start), block.start
    for row in block.data.split(b"\n")[:-1]:
        at, _, text = row.partition(b" ")
        shown, report = split_report(text) if MARKER in text else (text, None)
        has_both = shown is not None and report is not None
        if part.rows and (has_both or part.is_report is not (shown is None)):
            yield part.make_block(position)
            part = _PartialBlock(block, position)
        part.is_report = shown is None
        part.rows.append(row if shown is None else b"%b %b" % (at, shown))
        position += block.head_size + len(row) + 1
        if has_both:
            yield replace(part.make_block(position), report=report or b"")
            part = _PartialBlock(block, position)
    if part.rows:
        yield part.make_block(position)


@dataclass(slots=True)
class _PartialBlock:
    """Rows of a block that follow each other, and are all lines or all reports."""

    block: LogBlock
    start: int  # offset of its first record
    rows: list[bytes] = field(default_factory=list)
    is_report: bool = False

    def make_block(self, end: int) -> LogBlock:
        data = b"\n".join(self.rows) + b"\n"
        return replace(self.block, data=data, start=self.start, end=ReadPosition(end), is_report=self.is_report)
