"""Reports among the lines of a log: blocks of their own, from whatever position a reader goes on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.store.logs.blocks import LogBlock, OutputLine
from riseml.store.logs.line_parser import find_open_lines
from riseml.store.logs.read_position import ReadPosition
from riseml.store.logs.records import OpenLines, encode_frames
from riseml.store.logs.report_blocks import find_blocks, find_report_blocks
from riseml.store.logs.report_lines import KnownReports
from tests.unit.store.logs.log_frames import REPORT

PIECES = (
    b"a line\n",
    b"no end ",
    b"\n",
    REPORT + b"\n",
    b"\x1e" + REPORT + b"\n",
    b"bar 3/10\x1e" + REPORT + b"\n",
    b"[2] \x1e" + REPORT + b"\n",
    b"x " + REPORT + b"\n",
    REPORT[:9],
    REPORT[9:] + b"\n",
)


def encode(pieces: list[tuple[int, int, int]]) -> bytes:
    """Return the log of some pieces of output: (which job, which stream, which piece)."""
    keys = [JobKey(1, JobName("master"), 1), JobKey(1, JobName("worker.1"), 2)]
    opened: dict[JobKey, OpenLines] = {key: {} for key in keys}
    data = b""
    for number, (job, stream, piece) in enumerate(pieces):
        frame = Frame(f"2026-08-31T07:23:{number // 2:02d}Z", stream, PIECES[piece])
        more, opened[keys[job]] = encode_frames(keys[job], [frame], opened[keys[job]])
        data += more
    return data


def read_lines(data: bytes, position: ReadPosition) -> list[tuple[LogBlock, OutputLine]]:
    known = find_open_lines([data[position.open_from : position.offset]], position)
    blocks, _ = find_blocks(data[position.offset :], known)
    return [(block, line) for block in blocks for line in block.lines()]


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 2), st.integers(0, len(PIECES) - 1)), max_size=25))
def test_a_reader_goes_on_behind_each_line_and_report(pieces: list[tuple[int, int, int]]) -> None:
    data = encode(pieces)
    found = read_lines(data, ReadPosition())
    for number, (_, line) in enumerate(found, start=1):
        assert [one.text for _, one in read_lines(data, line.end)] == [one.text for _, one in found[number:]]
    blocks, end = find_report_blocks(data, ReadPosition())
    assert end == find_blocks(data, ReadPosition())[1]
    reports = [row for block in find_blocks(data, ReadPosition())[0] for row in block.report_rows()]
    assert [row for block in blocks for row in block.report_rows()] == reports
    assert all(block.stream == 1 for block in blocks)
    known = KnownReports()
    for start in [
        0,
        *(line.end.offset for _, line in found if not line.end.open_bytes),
    ]:  # two readers at any distance
        position = ReadPosition(start)
        assert find_blocks(data[start:], position, known) == find_blocks(data[start:], position)


def test_reports_that_one_reader_has_found_are_known_to_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data, known = encode([(0, 1, 4)] * 10), KnownReports()
    half = len(data) // 2
    for start, end in ((0, half), (half, len(data))):
        assert find_blocks(data[start:end], ReadPosition(start), known)[0][0].is_report
    monkeypatch.setattr("riseml.store.logs.report_blocks.holds_only_reports", None)  # to call it would fail
    (block,) = find_report_blocks(data, ReadPosition(), known)[0]
    assert (block.is_report, block.count) == (True, 10)
    assert not known.covers(0, len(data) + 1)


def test_a_report_keeps_its_attempt_and_an_unfinished_line_is_not_lost() -> None:
    data = encode([(1, 1, 1), (1, 1, 4), (1, 1, 0)])
    blocks, _ = find_blocks(data, ReadPosition())
    assert [line.text for block in blocks if not block.is_report for line in block.lines()] == [b"no end ", b"a line"]
    ((attempt, rows),) = [(block.attempt, block.report_rows()) for block in blocks if block.report_rows()]
    assert (attempt, rows) == (2, [b"2026-08-31T07:23:00Z " + REPORT])
