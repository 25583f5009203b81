"""The statistics of a few values of equal standing, such as one metric over seeds. Pure Python: no package for it.

The tail of Student's t distribution is an incomplete beta function: NIST Digital Library of Mathematical Functions,
8.17 (https://dlmf.nist.gov/8.17), with its continued fraction 8.17.22 summed by Lentz's method.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import math
import struct
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, stdev

from riseml.base.records import dataclass

LEVEL = 0.95
"""The share of intervals that is meant to hold the true mean."""

_MOST_LISTED = 7  # values whose 1,716 different resamples are all taken, each with its probability
_DRAWN = 2_000  # resamples of more values
_SEED = b"riseml"  # of the drawn resamples
_TINY = 1e-300
_PRECISION = 1e-15
_MOST_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class Spread:
    """Some values in short."""

    n: int
    mean: float
    deviation: float | None = None  # with n - 1; None: there is one value
    low: float | None = None  # interval of the mean by bootstrap; None: there is one value
    high: float | None = None


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """A test of whether two means differ."""

    difference: float  # of the means: the second one less the first one
    low: float  # interval of the difference at `LEVEL`
    high: float
    p: float  # probability of at least this difference if there is none


def describe_spread(values: Sequence[float]) -> Spread:
    """Return mean, deviation and interval of finite values; there is at least one."""
    mean = fmean(values)
    if len(values) < 2:
        return Spread(len(values), mean)
    low, high = bootstrap_interval(values)
    return Spread(len(values), mean, stdev(values), low, high)


def bootstrap_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Return the percentile interval of the mean by bootstrap. The same values always give the same interval.

    Up to seven values have all their resamples taken, each with its probability; more have 2,000 drawn ones.
    """
    resamples = _list_resamples(len(values))
    means = sorted(
        (math.fsum(count * value for count, value in zip(counts, values, strict=True)) / len(values), weight)
        for counts, weight in resamples
    )
    sums = list(itertools.accumulate(weight for _, weight in means))
    tail = (1 - level) / 2 * sums[-1]
    low = bisect.bisect_left(sums, tail)
    high = bisect.bisect_left(sums, sums[-1] - tail)
    return means[low][0], means[min(high, len(means) - 1)][0]


@lru_cache(maxsize=64)
def _list_resamples(n: int) -> tuple[tuple[tuple[int, ...], float], ...]:
    """Return how often each of `n` values is taken in each resample, with the weight of that resample."""
    if n <= _MOST_LISTED:
        drawn = {
            chosen: math.factorial(n) / math.prod(map(math.factorial, Counter(chosen).values()))
            for chosen in itertools.combinations_with_replacement(range(n), n)
        }
    else:
        numbers = struct.iter_unpack(f"<{n}I", hashlib.shake_256(_SEED).digest(4 * n * _DRAWN))
        drawn = dict(Counter(tuple(sorted(number % n for number in row)) for row in numbers))
    return tuple((tuple(Counter(chosen)[at] for at in range(n)), float(weight)) for chosen, weight in drawn.items())


def compare_means(first: Sequence[float], second: Sequence[float]) -> MeanDifference | None:
    """Return Welch's test, which does not ask that both groups spread alike. Each has at least two values.

    None: all values of each group are equal, and nothing says how much they spread.
    """
    errors = [stdev(values) ** 2 / len(values) for values in (first, second)]
    error = math.sqrt(sum(errors))
    if error == 0:
        return None
    shares = [part / sum(errors) for part in errors]
    freedom = 1 / math.fsum(share**2 / (len(values) - 1) for share, values in zip(shares, (first, second), strict=True))
    return _judge(fmean(second) - fmean(first), error, freedom)


def compare_pairs(first: Sequence[float], second: Sequence[float]) -> MeanDifference | None:
    """Return the paired t-test of values that belong together by their places; there are at least two pairs.

    None: all pairs have the same difference, and nothing says how much it spreads.
    """
    differences = [later - earlier for earlier, later in zip(first, second, strict=True)]
    error = stdev(differences) / math.sqrt(len(differences))
    return None if error == 0 else _judge(fmean(differences), error, len(differences) - 1)


def _judge(difference: float, error: float, freedom: float) -> MeanDifference:
    reach = error * find_t(1 - LEVEL, freedom)
    return MeanDifference(
        difference, difference - reach, difference + reach, two_sided_tail(difference / error, freedom)
    )


def two_sided_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t with so many degrees of freedom is at least as far from 0 as `t`."""
    square = t * t
    if math.isinf(square):
        return 0.0
    if square < freedom:  # the complement has its digits where `t` is small
        return 1 - incomplete_beta(square / (freedom + square), 0.5, freedom / 2)
    return incomplete_beta(freedom / (freedom + square), freedom / 2, 0.5)


def find_t(tail: float, freedom: float) -> float:
    """Return the t whose two-sided tail has this probability."""
    low = 0.0
    high = 1.0
    while two_sided_tail(high, freedom) > tail:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if two_sided_tail(middle, freedom) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function, of x from 0 to 1 and positive a and b."""
    if x <= 0 or x >= 1:
        return min(1.0, max(0.0, x))
    if x > (a + 1) / (a + b + 2):  # where the fraction of the complement converges faster
        return 1 - incomplete_beta(1 - x, b, a)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(logarithm) / (a * _sum_fraction(x, a, b))


def _sum_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of 8.17.22 as `1 + d1 / (1 + d2 / (1 + ...))`, by Lentz's method."""
    total = numerator = 1.0
    denominator = 0.0
    for step in range(1, _MOST_STEPS):
        half = step // 2
        if step % 2:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        denominator = 1 / ((1 + term * denominator) or _TINY)
        numerator = (1 + term / numerator) or _TINY
        total *= numerator * denominator
        if abs(numerator * denominator - 1) < _PRECISION:
            break
    return total
