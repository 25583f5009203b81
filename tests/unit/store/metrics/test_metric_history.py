"""Downsampling: bounded, exact at its ends, and the same however the server counts."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.store.metrics.metric_history import MOST_BUCKETS, MetricHistory
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


@settings(max_examples=50, deadline=None)
@given(VALUES, st.frozensets(st.integers(1, 2999), max_size=5))
def test_the_history_depends_on_the_values_alone(values: list[tuple[float, int | None]], cuts: frozenset[int]) -> None:
    whole, cut = count_all(values), count_all(values, cuts)
    assert whole.history.to_rows() == cut.history.to_rows()
    assert repr(whole.summarize()) == repr(cut.summarize())


@settings(max_examples=50, deadline=None)
@given(VALUES)
def test_the_history_is_bounded_and_loses_no_extreme(values: list[tuple[float, int | None]]) -> None:
    count = count_all(values)
    buckets, summary = count.history.read_buckets(), count.summarize()
    finite = [value for value, _ in values if math.isfinite(value)]
    assert len(buckets) <= MOST_BUCKETS
    assert sum(bucket.count for bucket in buckets) == summary.count == len(values)
    assert sum(bucket.finite for bucket in buckets) == len(finite) == summary.count - summary.not_finite
    assert min((one.minimum for one in buckets if one.minimum is not None), default=None) == summary.minimum
    assert max((one.maximum for one in buckets if one.maximum is not None), default=None) == summary.maximum
    assert (summary.minimum, summary.maximum) == ((min(finite), max(finite)) if finite else (None, None))
    assert repr(summary.last) == repr(values[-1][0])
    last_step = next((step for _, step in reversed(values) if step is not None), None)
    assert (buckets[0].first_step, buckets[-1].last_step) == (values[0][1], last_step)
    for bucket in buckets:
        if bucket.minimum is not None and bucket.mean is not None and bucket.maximum is not None:
            slack = 1e-9 * max(abs(bucket.minimum), abs(bucket.maximum)) + 1e-300
            assert bucket.minimum - slack <= bucket.mean <= bucket.maximum + slack


def test_many_values_keep_their_course() -> None:
    count = MetricCount("loss")
    for step in range(100_000):
        count.add(float(step), step, "2026-08-31T07:23:46Z", 1)
    buckets = count.history.read_buckets()
    assert MOST_BUCKETS // 2 <= len(buckets) <= MOST_BUCKETS
    for bucket in buckets:
        assert (bucket.minimum, bucket.maximum) == (bucket.first_step, bucket.last_step)
        assert bucket.mean == pytest.approx((bucket.minimum + bucket.maximum) / 2)  # type: ignore[operator]  # finite values alone


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
