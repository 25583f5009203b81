"""The reports of metrics among the lines of a log, as blocks of their own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from riseml.base.records import dataclass
from riseml.store.logs.blocks import LogBlock
from riseml.store.logs.line_parser import LineParser, has_pieces
from riseml.store.logs.read_position import ReadPosition
from riseml.store.logs.report_lines import MARKER, KnownReports, holds_only_reports, split_report

_STDOUT = 1


def find_blocks(
    data: bytes, position: ReadPosition, known_reports: KnownReports | None = None
) -> tuple[list[LogBlock], ReadPosition]:
    """Return the lines and reports that end in whole records, and where to continue.

    Args:
        data: the records that begin at `position`.
        position: its open lines are known.
        known_reports: what other readers of the log have found.
    """
    parser = LineParser(position)
    blocks = list(separate_reports(parser.read_lines(data), KnownReports() if known_reports is None else known_reports))
    return blocks, parser.position


def find_report_blocks(
    data: bytes, position: ReadPosition, known_reports: KnownReports | None = None
) -> tuple[list[LogBlock], ReadPosition]:
    """Return the reports among the records, as `find_blocks` does; fast when there are none."""
    if MARKER not in data and not position.open_bytes and not has_pieces(data):
        return [], ReadPosition(position.offset + len(data))
    blocks, end = find_blocks(data, position, known_reports)
    return [block for block in blocks if block.is_report or block.report], end


def separate_reports(blocks: Iterable[LogBlock], known_reports: KnownReports) -> Iterator[LogBlock]:
    """Give blocks of lines on, in their order, with the reports among them as blocks of their own."""
    for block in blocks:
        if block.stream != _STDOUT or MARKER not in block.data:
            yield block
        elif block.head_size and (
            known_reports.covers(block.start, block.end.offset) or holds_only_reports(block.data)
        ):  # nearly always, where one of many lines is a report
            known_reports.note_range(block.start, block.end.offset)
            yield replace(block, is_report=True)
        else:
            yield from _separate_rows(block)


def _separate_rows(block: LogBlock) -> Iterator[LogBlock]:
    """Give the lines and the reports of a block as blocks of their own, in their order."""
    part = _PartialBlock(block, block.start)
    position = block.start
    for row in block.data.split(b"\n")[:-1]:
        at, _, text = row.partition(b" ")
        line, report = split_report(text) if MARKER in text else (text, None)
        has_both = line is not None and report is not None
        if part.rows and (has_both or part.is_report is not (line is None)):
            yield part.make_block(block.end.move_to(position))
            part = _PartialBlock(block, position)
        part.is_report = line is None
        part.rows.append(row if line is None else b"%b %b" % (at, line))
        position += block.head_size + len(row) + 1
        if has_both:
            end = block.end.move_to(position) if block.head_size else block.end
            yield replace(part.make_block(end), report=report or b"")
            part = _PartialBlock(block, position)
    if part.rows:
        yield part.make_block(block.end)


@dataclass(slots=True)
class _PartialBlock:
    """Rows of a block that follow each other, and are all lines or all reports."""

    block: LogBlock
    start: int  # offset of its first record
    rows: list[bytes] = field(default_factory=list)
    is_report: bool = False

    def make_block(self, end: ReadPosition) -> LogBlock:
        data = b"\n".join(self.rows) + b"\n"
        return replace(self.block, data=data, start=self.start, end=end, is_report=self.is_report)
