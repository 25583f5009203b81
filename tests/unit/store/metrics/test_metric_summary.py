"""What is known of a metric: its best value, its last one, and their steps."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.store.metrics.metric_summary import MetricCount
from tests.unit.store.metrics.metric_values import VALUES, count_all


def test_the_best_step_is_the_first_one_and_nan_is_never_best() -> None:
    summary = count_all([(math.nan, 0), (3.0, 1), (1.0, 2), (1.0, 3), (-math.inf, 4), (3.0, 5)]).summarize()
    assert (summary.minimum, summary.minimum_step, summary.maximum, summary.maximum_step) == (1.0, 2, 3.0, 1)
    assert (summary.count, summary.not_finite, summary.last, summary.last_step) == (6, 2, 3.0, 5)


def test_a_last_value_without_a_step_is_of_the_last_step() -> None:
    summary = count_all([(0.5, 10), (0.75, 20), (0.9, None)]).summarize()  # `report`, `report`, `report_result`
    assert (summary.last, summary.last_step, summary.maximum_step) == (0.9, 20, 20)
    assert count_all([(0.5, None), (0.75, 20)]).history.read_buckets()[0].first_step is None
    assert count_all([(0.5, None)]).summarize().last_step is None


@settings(max_examples=50, deadline=None)
@given(values=VALUES, sizes=st.lists(st.integers(1, 40), max_size=8), has_steps=st.booleans())
def test_many_values_at_once_count_as_one_by_one(
    values: list[tuple[float, int | None]], sizes: list[int], *, has_steps: bool
) -> None:
    steps = [at if has_steps else None for at in range(len(values))]
    numbers = [value for value, _ in values]
    alone, together, position = MetricCount("loss"), MetricCount("loss"), 0
    for at, number in enumerate(numbers):
        alone.add(number, steps[at], f"{at}Z", 1)
    for size in (*sizes, len(values)):
        some = slice(position, position + size)
        if numbers[some]:
            stamps = [b"%dZ" % at for at in range(position, position + len(numbers[some]))]
            together.add_many(numbers[some], steps[some] if has_steps else None, stamps, 1)
        position += size
    assert repr(together.summarize()) == repr(alone.summarize())
    assert repr(together.history.to_rows()) == repr(alone.history.to_rows())
