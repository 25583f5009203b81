"""Mean curves of several runs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.analysis.group_curves import MOST_POINTS, average_curves, describe_means, place_points


def test_a_mean_is_that_of_the_runs_that_reach_a_step() -> None:
    one = [(0.0, 0.0), (10.0, 1.0), (20.0, 2.0)]
    other = [(5.0, 1.0), (15.0, 3.0)]
    assert average_curves([one, other, []]) == [
        (0.0, [0.0]),
        (5.0, [0.5, 1.0]),
        (10.0, [1.0, 2.0]),
        (15.0, [1.5, 3.0]),
        (20.0, [2.0]),
    ]
    first, second, *_ = describe_means([one, other])
    assert (first.x, first.n, first.mean, first.low, first.high, first.error) == (0.0, 1, 0.0, 0.0, 0.0, None)
    assert (second.n, second.mean, second.low, second.high) == (2, 0.75, 0.5, 1.0)
    assert second.error == pytest.approx(math.sqrt(2 * 0.25**2) / math.sqrt(2))


def test_of_many_steps_some_are_left_with_both_ends() -> None:
    means = describe_means([[(float(x), 1.0) for x in range(start, 5000, 7)] for start in range(7)])
    assert len(means) == MOST_POINTS
    assert (means[0].x, means[-1].x) == (0.0, 4999.0)


def test_values_without_a_step_are_counted() -> None:
    parts = [(None, 0.5, 2), (None, None, 1), (7, 0.25, 1)]
    assert place_points(parts, counted=True) == ((2.0, 0.5), (4.0, 0.25))
    assert place_points([(9, 0.5, 1), (7, 0.25, 1)], counted=False) == ((7.0, 0.25), (9.0, 0.5))


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=20), st.integers(1, 5))
def test_equal_runs_are_their_own_mean(values: list[float], count: int) -> None:
    curve = [(float(at), value) for at, value in enumerate(values)]
    assert average_curves([curve] * count) == [(x, [y] * count) for x, y in curve]
