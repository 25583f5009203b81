"""Means, intervals and tests of a few values, against published tables and known closed forms."""

from __future__ import annotations

import math
import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.analysis.seed_statistics import (
    bootstrap_interval,
    compare_means,
    compare_pairs,
    describe_spread,
    find_t,
    incomplete_beta,
    two_sided_tail,
)

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=10)


# NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2: critical values of Student's t, by degrees of freedom
@pytest.mark.parametrize(
    ("freedom", "tail", "t"),
    [
        *((1, 0.05, 12.706), (2, 0.05, 4.303), (3, 0.05, 3.182), (4, 0.05, 2.776), (5, 0.05, 2.571)),
        *((8, 0.05, 2.306), (10, 0.05, 2.228), (20, 0.05, 2.086), (30, 0.05, 2.042), (100, 0.05, 1.984)),
        *((4, 0.1, 2.132), (9, 0.01, 3.250), (15, 0.02, 2.602), (100, 0.002, 3.174), (1, 0.01, 63.657)),
    ],
)
def test_the_t_distribution_has_its_published_values(freedom: int, tail: float, t: float) -> None:
    assert find_t(tail, freedom) == pytest.approx(t, abs=6e-4)
    assert two_sided_tail(t, freedom) == pytest.approx(tail, rel=1e-3)


@given(st.floats(0.001, 1e3))
def test_the_t_distribution_has_its_closed_forms(t: float) -> None:
    assert two_sided_tail(t, 1) == pytest.approx(1 - 2 * math.atan(t) / math.pi, rel=1e-9, abs=1e-12)
    assert two_sided_tail(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), rel=1e-6, abs=1e-12)
    four = 1 - t * (6 + t * t) / (4 + t * t) ** 1.5
    assert two_sided_tail(t, 4) == pytest.approx(four, rel=1e-5, abs=1e-9)
    assert two_sided_tail(-t, 3) == two_sided_tail(t, 3)


@given(st.floats(0.001, 0.999), st.floats(0.1, 50), st.floats(0.1, 50))
def test_the_incomplete_beta_function_has_its_symmetry(x: float, a: float, b: float) -> None:
    assert incomplete_beta(x, a, b) + incomplete_beta(1 - x, b, a) == pytest.approx(1, abs=1e-9)
    assert incomplete_beta(x, 1, 1) == pytest.approx(x, abs=1e-12)
    assert incomplete_beta(x, a, 1) == pytest.approx(x**a, rel=1e-9, abs=1e-12)


def test_welchs_test_has_the_result_of_a_published_example() -> None:
    """The example of Student's own data, sleep: t = -1.8608, df = 17.776, p = 0.07939, interval -3.3655 to 0.2055 (R,
    `t.test(extra ~ group, data = sleep)`); paired: t = -4.0621, df = 9, p = 0.002833, interval -2.4599 to -0.7001."""
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    welch = compare_means(first, second)
    assert welch is not None
    assert (welch.p, welch.low, welch.high) == pytest.approx((0.07939, -0.2055, 3.3655), abs=6e-5)
    paired = compare_pairs(first, second)
    assert paired is not None
    assert (paired.p, paired.low, paired.high) == pytest.approx((0.002833, 0.7001, 2.4599), abs=6e-5)


@given(VALUES)
def test_a_group_does_not_differ_from_itself(values: list[float]) -> None:
    result = compare_means(values, values)
    assert result is None or result.p == pytest.approx(1)
    assert compare_pairs(values, values) is None


@given(VALUES, VALUES)
def test_the_order_of_two_groups_changes_only_the_sign(first: list[float], second: list[float]) -> None:
    one, other = compare_means(first, second), compare_means(second, first)
    if one is None or other is None:
        assert one is other
        return
    assert (one.p, one.difference) == pytest.approx((other.p, -other.difference))
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


@given(VALUES)
def test_an_interval_is_always_the_same_and_holds_the_mean_of_many_values(values: list[float]) -> None:
    low, high = bootstrap_interval(values)
    assert (low, high) == bootstrap_interval(list(values))
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


def test_the_interval_of_five_values_is_the_exact_one() -> None:
    """All 3,125 resamples of five values, sorted: the mean behind 2.5% of them and the one before the last 2.5%."""
    values = [0.91, 0.93, 0.9, 0.97, 0.92]
    means = sorted(fmean(values[int(at) // 5**digit % 5] for digit in range(5)) for at in range(5**5))
    assert bootstrap_interval(values) == pytest.approx((means[78], means[3046]))


def test_drawn_resamples_are_close_to_the_normal_interval() -> None:
    source = random.Random(3)
    values = [source.gauss(10, 2) for _ in range(60)]
    spread = describe_spread(values)
    assert spread.deviation is not None and spread.low is not None and spread.high is not None
    reach = 1.96 * spread.deviation / math.sqrt(60)
    assert (spread.low, spread.high) == pytest.approx((spread.mean - reach, spread.mean + reach), abs=0.08)


def test_one_value_has_no_deviation_and_no_interval() -> None:
    spread = describe_spread([0.5])
    assert (spread.n, spread.mean, spread.deviation, spread.low, spread.high) == (1, 0.5, None, None, None)


def test_deviations_have_one_degree_less() -> None:
    assert describe_spread([1.0, 3.0]).deviation == pytest.approx(math.sqrt(2))
