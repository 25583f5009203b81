"""Values of a metric, counted with saves between them."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from riseml.store.metrics.metric_history import MetricHistory
from riseml.store.metrics.metric_summary import MetricCount, read_stored_summaries, summary_to_row

VALUES = st.lists(
    st.tuples(st.floats(width=64), st.one_of(st.none(), st.integers(-5, 5))), min_size=1, max_size=50
).flatmap(lambda some: st.integers(1, 60).map(lambda times: some * times))


def count_all(values: list[tuple[float, int | None]], cuts: frozenset[int] = frozenset()) -> MetricCount:
    """Count values; at each cut the count is saved and loaded again."""
    count = MetricCount("loss")
    for number, (value, step) in enumerate(values):
        if number in cuts:
            history = MetricHistory.from_rows(json.loads(json.dumps(count.history.to_rows(), allow_nan=False)))
            text = json.dumps({"metrics": [summary_to_row(count.summarize())], "slow": []}, allow_nan=False)
            count = MetricCount.restore(read_stored_summaries(text).metrics[0], history)
        count.add(value, step, f"2026-08-31T07:23:46.{number:09d}Z", 1)
    return count
