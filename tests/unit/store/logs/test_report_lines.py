"""Reports among lines: what is one, what is shown, and that a reader goes on from any cursor."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.names import BUILD, JobName
from riseml.model import Frame, JobKey
from riseml.store.logs.blocks import LogBlock, OutputLine
from riseml.store.logs.line_parser import find_open_lines
from riseml.store.logs.read_position import ReadPosition
from riseml.store.logs.records import OpenLines, encode_frames
from riseml.store.logs.report_blocks import find_blocks, find_report_blocks
from riseml.store.logs.report_lines import KnownReports, split_report
from riseml.store.metrics.metric_tally import MetricTally, batch_reports, read_reports

REPORT = b'riseml.report {"step": 3, "loss": 0.5}'
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


@pytest.mark.parametrize(
    "text",
    [
        b'riseml.report {"loss": 1}',
        b'riseml.report {"loss":1,"acc" : 2.5e-3 , "step":-4}',
        b'riseml.report { "val/acc@0.5:mean-x.y": NaN, "b": -Infinity, "c": inf, "d": nan }',
        b'riseml.report {"step": 3}',
        'riseml.report {"损失": 1, "精度": 2, "val loss": 3, "1oss": 4}'.encode(),
        b'riseml.report {"\\u635f\\ud83d\\ude42": 1, "a \\"b\\" \\\\c": 2}',
        b'riseml.report {"' + "損".encode() * 64 + b'": 1}',
        b'\x1eriseml.report {"loss": 1}\r',
        b'[12] riseml.report {"loss": 1}',
        b'[12] \x1eriseml.report {"loss": 1}',
        b"riseml.report {" + b", ".join(b'"m%d": 1' % number for number in range(100)) + b"}",
    ],
)
def test_a_report_is_not_shown(text: bytes) -> None:
    shown, report = split_report(text)
    assert shown is None
    assert report == text[text.index(b"riseml") :]


@pytest.mark.parametrize(
    "text",
    [
        b"riseml.report {}",
        b'riseml.report {"loss": 1} ',
        b'riseml.report {"loss": 1}}',
        b'riseml.report {"loss": "1"}',
        b'riseml.report {"loss": 1,}',
        b"riseml.report {loss: 1}",
        b'riseml.report {"loss": true}',
        b'riseml.report {"lo\x1b[31mss": 1}',
        b'riseml.report {"": 1}',
        b'riseml.report {"a\\nb": 1}',
        b'riseml.report {"a\\u000ab": 1}',
        b'riseml.report {"\\ud83d": 1}',
        b'riseml.report {"\xc2\x9b31m": 1}',
        b'riseml.report {"\xe2\x80\xae": 1}',
        b'riseml.report {"\xff": 1}',
        b'riseml.report {"\xc0\x80": 1}',
        b'riseml.report {"st\\u0065p": 1.5}',
        b'riseml.report {"' + "損".encode() * 65 + b'": 1}',
        b'riseml.report {"a" b": 1}',
        b'riseml.report {"' + b"a" * 65 + b'": 1}',
        b'riseml.report {"loss": ' + b"9" * 400 + b"}",
        b'riseml.report {"loss": 0.' + b"9" * 41 + b"}",
        b'riseml.report {"step": 1.5, "loss": 1}',
        b'riseml.report {"step": ' + b"9" * 16 + b', "loss": 1}',
        b'riseml.report {"step": NaN, "loss": 1}',
        b'say riseml.report {"loss": 1}',
        b'[1 ] riseml.report {"loss": 1}',
        b"riseml.report {" + b", ".join(b'"m%d": 1' % number for number in range(102)) + b"}",
        b'riseml.report {"a": 1' + b" " * 100_000,
        b"riseml.report {" * 5_000,
    ],
)
def test_an_invalid_report_stays_a_line(text: bytes) -> None:
    assert split_report(text) == (text, None)


def test_a_report_may_end_a_line() -> None:
    assert split_report(b"\rstep 3 of 10\x1e" + REPORT) == (b"\rstep 3 of 10", REPORT)


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


TEXTS = (
    b'riseml.report {"step": 3, "loss": 0.5}',
    b'\x1eriseml.report { "loss" : -1e3 ,"val/a.b": nan }\r',
    b'[2] \x1eriseml.report {"loss": inf}',
    b'riseml.report {"step": 4}',
    b'riseml.report {"loss": 1, "loss": 2}',
    b'riseml.report {"step": 1, "step": 2, "loss": 7}',
)


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=12), alike=st.booleans())
def test_reports_as_columns_count_as_one_by_one(texts: list[bytes], *, alike: bool) -> None:
    rows = texts[:1] * 5 if alike else texts
    data = b"".join(b"2026-08-31T07:23:%02dZ %b\n" % (at, text) for at, text in enumerate(rows))
    block = LogBlock(JobName("master"), 1, data, 0, 0, ReadPosition(len(data)), attempt=2, is_report=True)
    assert all(split_report(text)[0] is None for text in rows)
    one_by_one, together = MetricTally(), MetricTally()
    for report in read_reports([block]):
        one_by_one.add_report(report)
    batch = batch_reports(block)
    if batch is None:
        return
    together.add_batch(batch)
    assert repr(together.summarize()) == repr(one_by_one.summarize())
    assert together.changed == one_by_one.changed


def test_reports_of_one_form_are_columns() -> None:
    data = b"".join(b"T%d %b\n" % (at, TEXTS[0]) for at in range(3))
    block = LogBlock(JobName("master"), 1, data, 0, 0, ReadPosition(len(data)), is_report=True)
    assert batch_reports(block) == (1, (b"T0", b"T1", b"T2"), [3, 3, 3], {"loss": [0.5, 0.5, 0.5]})
    assert batch_reports(replace(block, job=BUILD)) is None
    assert batch_reports(replace(block, data=data + b"T3 %b\n" % TEXTS[2])) is None


def test_a_report_keeps_its_attempt_and_an_unfinished_line_is_not_lost() -> None:
    data = encode([(1, 1, 1), (1, 1, 4), (1, 1, 0)])
    blocks, _ = find_blocks(data, ReadPosition())
    assert [line.text for block in blocks if not block.is_report for line in block.lines()] == [b"no end ", b"a line"]
    ((attempt, rows),) = [(block.attempt, block.report_rows()) for block in blocks if block.report_rows()]
    assert (attempt, rows) == (2, [b"2026-08-31T07:23:00Z " + REPORT])
