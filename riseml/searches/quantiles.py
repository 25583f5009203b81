"""Numbers of a distribution by their place in it, from 0 to 1.

A sampler of Optuna knows no normal distribution, and wants ends that do not change from trial to trial. So it chooses a
place between 0 and 1 for such a parameter, and this module finds the number there, and the place of a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from statistics import NormalDist

from riseml.spec.config.conditions import find_ends
from riseml.spec.config.types import Distribution, Scale
from riseml.spec.scalars.quantities import format_decimal

_DIGITS = 6  # digits of a number without steps: more only make results hard to read
_HALF = 0.5  # of the distance between two whole numbers


def needs_place(distribution: Distribution) -> bool:
    """Return True for a distribution of which a sampler chooses the place of a number, not the number."""
    return distribution.scale is Scale.NORMAL or bool(distribution.low_formula or distribution.high_formula)


def find_place_ends(distribution: Distribution) -> tuple[float, float]:
    """Return the places of the smallest and the largest number."""
    if distribution.scale is not Scale.NORMAL:
        return 0.0, 1.0
    normal = NormalDist(distribution.mean, distribution.sd)
    return normal.cdf(distribution.low), normal.cdf(distribution.high)


def write_number(distribution: Distribution, place: float, texts: Mapping[str, str]) -> str:
    """Return the number at a place, as jobs get it.

    Args:
        distribution: of the parameter.
        place: from 0 to 1.
        texts: values of the parameters in its formulas.

    Raises:
        NoValue: no number lies between the ends with these values.
    """
    low, high = find_ends(distribution, texts)
    if distribution.scale is Scale.NORMAL:
        number = NormalDist(distribution.mean, distribution.sd).inv_cdf(place)
        return _round_by(min(max(number, low), high), distribution.sd)
    if distribution.by_magnitude:
        lowest = math.log(low - _HALF)
        highest = math.log(high + _HALF)
        return str(int(min(max(round(math.exp(lowest + place * (highest - lowest))), low), high)))
    step = _find_step(distribution)
    if step is not None:
        count = _count_steps(low, high, step)
        return format_decimal(Decimal(repr(low)) + step * min(int(place * count), count - 1))
    if distribution.scale is Scale.LOG:
        number = math.exp(math.log(low) + place * (math.log(high) - math.log(low)))
        return format_decimal(Decimal(repr(min(max(float(f"{number:.{_DIGITS}g}"), low), high))))
    return _round_by(low + place * (high - low), high - low, (low, high))


def find_place(distribution: Distribution, text: str, texts: Mapping[str, str]) -> float:
    """Return the place of a number: the opposite of `write_number`.

    Raises:
        NoValue: as `write_number`.
    """
    low, high = find_ends(distribution, texts)
    number = float(text)
    first, last = find_place_ends(distribution)
    step = _find_step(distribution)
    if distribution.scale is Scale.NORMAL:
        place = NormalDist(distribution.mean, distribution.sd).cdf(number)
    elif distribution.by_magnitude:
        lowest = math.log(low - _HALF)
        highest = math.log(high + _HALF)
        place = (math.log(number) - lowest) / (highest - lowest)
    elif step is not None:
        index = round((Decimal(text) - Decimal(repr(low))) / step)
        place = (index + _HALF) / _count_steps(low, high, step)
    elif low == high:
        place = first
    elif distribution.scale is Scale.LOG:
        place = (math.log(number) - math.log(low)) / (math.log(high) - math.log(low))
    else:
        place = (number - low) / (high - low)
    return min(max(place, first), last)


def _find_step(distribution: Distribution) -> Decimal | None:
    if distribution.scale is Scale.INT and not distribution.by_magnitude:
        return Decimal(int(distribution.step or 1))
    return None if distribution.step is None else Decimal(repr(distribution.step))


def _count_steps(low: float, high: float, step: Decimal) -> int:
    return 1 + int((Decimal(repr(high)) - Decimal(repr(low))) // step)


def _round_by(number: float, unit: float, ends: tuple[float, float] | None = None) -> str:
    """Return a number with six digits of the size of `unit`, so that its place tells it from its neighbours."""
    places = 0 if not unit else _DIGITS - 1 - math.floor(math.log10(unit))
    rounded = round(number, places)
    if ends is not None:
        rounded = min(max(rounded, ends[0]), ends[1])
    return format_decimal(Decimal(repr(float(rounded) or 0.0)))  # not -0.0
