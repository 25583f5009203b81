"""What is stored of experiments that have reported values."""

from __future__ import annotations

from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_rows import TallyRow
from riseml.store.metrics.metric_summary import MetricCount

ODD_NAME = 'it\'s <b>"other"</b> größe\\n 損失'


def count(experiment: int, *values: float) -> TallyRow:
    """Return what is stored of an experiment that reported values of `loss`, and their opposites as another metric."""
    loss, other = MetricCount("loss"), MetricCount(ODD_NAME)
    for at, value in enumerate(values):
        loss.add(value, at, "2026-08-31T07:23:46Z", 1)
        other.add(-value, at, "2026-08-31T07:23:46Z", 1)
    summaries = {one.name: one.summarize() for one in (other, loss)}
    return TallyRow(experiment, ReadPosition(), complete=True, summaries=summaries)
