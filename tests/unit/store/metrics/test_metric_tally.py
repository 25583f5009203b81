"""Reports are counted one by one, and as columns where they have one form."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.names import BUILD, JobName
from riseml.store.logs.blocks import LogBlock
from riseml.store.logs.read_position import ReadPosition
from riseml.store.logs.report_lines import split_report
from riseml.store.metrics.metric_tally import MetricTally, batch_reports, read_reports

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
