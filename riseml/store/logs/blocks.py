"""The pieces in which readers get a log: successive lines of one job and stream, as one piece of bytes. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.store.logs.read_position import ReadPosition


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line of a job's output."""

    job: JobName
    at: str  # timestamp of its first piece, as the engine wrote it
    stream: int  # 1: stdout, 2: stderr, 3: the engine
    text: bytes  # without its newline
    end: ReadPosition  # a reader that continues here loses and repeats nothing
    attempt: int = 1  # attempt of the job


@dataclass(frozen=True, slots=True)
class LogBlock:
    """Lines of one job and one stream that follow each other, or reports; one at least."""

    job: JobName
    stream: int  # 1: stdout, 2: stderr, 3: the engine
    data: bytes  # `<timestamp> <text>\n` for each line
    start: int  # offset of its first record in the file, in bytes
    head_size: int  # bytes by which each record is longer than its line in `data`; 0: one line that came in pieces
    end: ReadPosition  # a reader that continues here loses and repeats nothing
    attempt: int = 1  # attempt of the job
    is_report: bool = False  # its lines are reports of metrics, which are not shown
    report: bytes = b""  # the report after the text of its only line, such as an unfinished progress bar

    @property
    def count(self) -> int:
        """The number of lines."""
        return self.data.count(b"\n")

    @property
    def first_at(self) -> str:
        """The timestamp of the first line."""
        return self.data.partition(b" ")[0].decode("utf-8", "replace")

    def report_rows(self) -> list[bytes]:
        """Return `<timestamp> <report>` of each report."""
        if self.is_report:
            return self.data.split(b"\n")[:-1]
        return [b"%b %b" % (self.data.partition(b" ")[0], self.report)] if self.report else []

    def timestamps(self) -> Iterator[str]:
        """Give the timestamp of each line."""
        return (row.partition(b" ")[0].decode("utf-8", "replace") for row in self.data.split(b"\n")[:-1])

    def lines(self) -> list[OutputLine]:
        """Return each line on its own."""
        lines: list[OutputLine] = []
        job = self.job
        stream = self.stream
        attempt = self.attempt
        head_size = self.head_size + 1
        position = self.start
        open_from = self.end.open_from if self.end.open_bytes else None
        for row in self.data.split(b"\n")[:-1]:
            position += head_size + len(row)
            at, _, text = row.partition(b" ")
            end = ReadPosition(position) if open_from is None else ReadPosition(position, position - open_from)
            try:
                stamp = at.decode()
            except UnicodeDecodeError:  # the file is damaged
                stamp = at.decode("utf-8", "replace")
            lines.append(OutputLine(job, stamp, stream, text, end, attempt))
        lines[-1] = replace(lines[-1], end=self.end)
        return lines

    def split(self, count: int) -> tuple[LogBlock, LogBlock]:
        """Return the first `count` lines, and the others; the block has more than `count` lines."""
        size = 0
        for _ in range(count):
            size = self.data.index(b"\n", size) + 1
        middle = self.start + size + count * self.head_size
        first = replace(self, data=self.data[:size], end=self.end.move_to(middle))
        return first, replace(self, data=self.data[size:], start=middle)


def join_blocks(blocks: list[LogBlock]) -> LogBlock:
    """Return the lines of blocks of one job and stream as one block, which can be sent but not split."""
    return replace(blocks[-1], data=b"".join(block.data for block in blocks), start=blocks[0].start)
