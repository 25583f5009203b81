"""Reports are counted one by one, and as columns where they have one form."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.names import BUILD, JobName
from riseml.spec.config.types import FILE_TRACKERS, Tracker
from riseml.store.logs.blocks import LogBlock
from riseml.store.logs.read_position import ReadPosition
from riseml.store.logs.report_lines import split_report
from riseml.store.metrics.metric_tally import MetricReport, MetricTally, batch_reports, read_reports

TEXTS = (
    b'riseml.report {"step": 3, "loss": 0.5}',
    b'\x1eriseml.report { "loss" : -1e3 ,"val/a.b": nan }\r',
    b'[2] \x1eriseml.report {"loss": inf}',
    b'riseml.report {"step": 4}',
    b'riseml.report {"loss": 1, "loss": 2}',
    b'riseml.report {"step": 1, "step": 2, "loss": 7}',
    b'riseml.report {"riseml.at": 1788161026.25, "step": 3, "loss": 0.25, "eval/loss": 1}',
    b'riseml.report {"riseml.at": 1e99, "step": 3, "loss": 0.5}',
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
    columns = {"loss": [0.5, 0.5, 0.5]}
    assert batch_reports(block) == (1, (b"T0", b"T1", b"T2"), [3, 3, 3], columns, False)
    assert batch_reports(replace(block, job=BUILD)) is None
    assert batch_reports(replace(block, data=data + b"T3 %b\n" % TEXTS[2])) is None


def test_a_value_that_was_noted_elsewhere_has_its_own_time() -> None:
    data = b"T0 %b\nT1 %b\n" % (TEXTS[-2], TEXTS[-1])
    block = LogBlock(JobName("master"), 1, data, 0, 0, ReadPosition(len(data)), is_report=True)
    assert [(report.at, report.is_tracked) for report in read_reports([block])] == [
        ("2026-08-31T07:23:46.250000Z", True),
        ("T1", True),
    ]
    first = replace(block, data=data[: data.index(b"\n") + 1])
    assert batch_reports(first) == (
        1,
        (b"2026-08-31T07:23:46.250000Z",),
        [3],
        {"loss": [0.25], "eval/loss": [1.0]},
        True,
    )


def report(tally: MetricTally, step: int, value: float, *, is_tracked: bool) -> None:
    tally.add_report(MetricReport(JobName("master"), 1, "T", step, (("loss", value),), is_tracked))


@pytest.mark.parametrize("count", [5, 700])
@pytest.mark.parametrize("first", [True, False])
def test_two_sources_of_a_metric_are_one_curve_while_they_agree(count: int, *, first: bool) -> None:
    """The second source is behind, has 24 bits of each number, and its values come in between."""
    tally = MetricTally()
    other = f"loss ({'report' if first else 'tensorboard'})"
    for step in range(count):
        report(tally, step, 1 / (step + 3), is_tracked=first)
        if step % 2:
            (value,) = struct.unpack("<f", struct.pack("<f", 1 / (step // 2 + 3)))
            report(tally, step // 2, value, is_tracked=not first)
    assert (set(tally.list_hidden()), list(tally.list_last_values())) == ({other}, ["loss"])
    report(tally, count // 2, 5.0, is_tracked=not first)
    for step in range(count // 2 + 1, count):
        report(tally, step, 1 / (step + 3), is_tracked=not first)
    assert (set(tally.list_hidden()), set(tally.list_last_values())) == (set(), {"loss", other})
    restored = MetricTally(
        [metric for name in tally.summarize() if (metric := tally.find_count(name))], tracked=tally.tracked
    )
    assert restored.choose_name("loss", is_tracked=not first) == other


@pytest.mark.parametrize("tracker", sorted(FILE_TRACKERS))
def test_two_trackers_of_a_metric_are_one_curve_while_they_agree(tracker: Tracker) -> None:
    """The program that reads their files gives the second one another name."""
    tally = MetricTally()
    other = f"loss ({tracker.value})"
    for step in range(9):
        for name in ("loss", other):
            tally.add_report(MetricReport(JobName("master"), 1, "T", step, ((name, step / 7),), is_tracked=True))
    assert tally.list_hidden() == {other}
    tally.add_report(MetricReport(JobName("master"), 1, "T", 9, (("loss", 1),), is_tracked=True))
    tally.add_report(MetricReport(JobName("master"), 1, "T", 9, ((other, 2),), is_tracked=True))
    assert tally.list_hidden() == set()
