"""The history of a metric: bounded, exact at its ends, and the same however the server counts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.store.metrics.metric_history import MOST_BUCKETS, MetricHistory, join_neighbours
from riseml.store.metrics.metric_summary import MetricCount
from tests.unit.store.metrics.metric_values import VALUES, count_all


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


def test_a_spike_among_a_million_values_stays_however_few_points_are_left() -> None:
    history = MetricHistory()
    values = [0.5] * 1_000_000
    values[654_321] = 9.0
    values[654_322] = -9.0
    for start in range(0, len(values), 10_000):
        steps = list(range(start, start + 10_000))
        history.add_finite(values[start : start + 10_000], steps, [b"2026-08-31T07:23:46Z"] * 10_000)
    history.add(math.nan, 1_000_000, "2026-08-31T07:23:46Z")
    buckets = history.read_buckets()
    for most in (MOST_BUCKETS, 20, 2):
        some = join_neighbours(buckets, most)
        assert len(some) <= most
        assert (max(one.maximum or 0 for one in some), min(one.minimum or 0 for one in some)) == (9.0, -9.0)
        assert sum(one.count - one.finite for one in some) == 1
        assert (some[0].first_step, some[-1].last_step) == (0, 1_000_000)
