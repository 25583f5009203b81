"""The parameters of a search as Optuna's distributions, and its values as the texts that jobs get."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from riseml.model import Point
from riseml.spec.config.types import Distribution, Parameter, Scale
from riseml.spec.scalars.quantities import format_decimal

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_DIGITS = 6  # digits of a number without steps: more only make results hard to read
_MOST_LISTED = 10_000  # points that are listed to find one that was not tried


def make_space(parameters: Sequence[Parameter]) -> dict[str, BaseDistribution]:
    """Return the distribution of each parameter that has more than one value."""
    from optuna.distributions import CategoricalDistribution

    space: dict[str, BaseDistribution] = {}
    for parameter in parameters:
        if parameter.distribution is not None:
            space[parameter.name] = _make_distribution(parameter.distribution)
        elif len(set(parameter.values)) > 1:
            space[parameter.name] = CategoricalDistribution(tuple(dict.fromkeys(parameter.values)))
    return space


def _make_distribution(distribution: Distribution) -> BaseDistribution:
    from optuna.distributions import FloatDistribution, IntDistribution

    if distribution.by_magnitude:
        return IntDistribution(int(distribution.low), int(distribution.high), log=True)
    if distribution.scale is Scale.INT:
        return IntDistribution(int(distribution.low), int(_find_last(distribution)), step=int(distribution.step or 1))
    if distribution.step is not None:
        return FloatDistribution(distribution.low, float(_find_last(distribution)), step=distribution.step)
    return FloatDistribution(distribution.low, distribution.high, log=distribution.scale is Scale.LOG)


def make_point(parameters: Sequence[Parameter], values: Mapping[str, Any]) -> Point:
    """Return the texts of the values that a sampler chose; a parameter with one value always has it."""
    return tuple((parameter.name, _format_value(parameter, values)) for parameter in parameters)


def read_point(parameters: Sequence[Parameter], point: Point) -> dict[str, Any]:
    """Return the values of a point as a sampler knows them: the opposite of `make_point`."""
    texts = dict(point)
    values: dict[str, Any] = {}
    for parameter in parameters:
        text = texts[parameter.name]
        if parameter.distribution is not None:
            values[parameter.name] = int(text) if parameter.distribution.scale is Scale.INT else float(text)
        elif len(set(parameter.values)) > 1:
            values[parameter.name] = text
    return values


def count_points(parameters: Sequence[Parameter]) -> int | None:
    """Return how many points there are; None when a parameter has too many values to count."""
    counts = [_count_values(parameter) for parameter in parameters]
    return None if None in counts else math.prod(count or 0 for count in counts)


def list_points(parameters: Sequence[Parameter]) -> Iterator[Point] | None:
    """Return every point, the last parameter varying fastest; None when there are too many to list."""
    count = count_points(parameters)
    if count is None or count > _MOST_LISTED:
        return None
    names = [parameter.name for parameter in parameters]
    rows = itertools.product(*(_list_values(parameter) for parameter in parameters))
    return (tuple(zip(names, row, strict=True)) for row in rows)


def _format_value(parameter: Parameter, values: Mapping[str, Any]) -> str:
    distribution = parameter.distribution
    if distribution is None:
        return str(values.get(parameter.name, parameter.values[0]))
    value = values[parameter.name]
    if distribution.scale is Scale.INT:
        return str(int(value))
    if distribution.step is not None:
        low = Decimal(repr(distribution.low))
        step = Decimal(repr(distribution.step))
        return format_decimal(low + round((Decimal(repr(float(value))) - low) / step) * step)
    rounded = min(max(float(f"{value:.{_DIGITS}g}"), distribution.low), distribution.high)
    return format_decimal(Decimal(repr(rounded)))


def _find_last(distribution: Distribution) -> Decimal:
    """Return the largest number that a step ends on."""
    low, high, step = (
        Decimal(repr(number)) for number in (distribution.low, distribution.high, distribution.step or 1.0)
    )
    return low + (high - low) // step * step


def _count_values(parameter: Parameter) -> int | None:
    distribution = parameter.distribution
    if distribution is None:
        return len(set(parameter.values))
    if distribution.scale is not Scale.INT and distribution.step is None:
        return 1 if distribution.low == distribution.high else None
    return 1 + int(
        (_find_last(distribution) - Decimal(repr(distribution.low))) / Decimal(repr(distribution.step or 1.0))
    )


def _list_values(parameter: Parameter) -> tuple[str, ...]:
    distribution = parameter.distribution
    if distribution is None:
        return tuple(dict.fromkeys(parameter.values))
    step = Decimal(repr(distribution.step or 1.0))
    values = (distribution.low + float(step * index) for index in range(_count_values(parameter) or 0))
    return tuple(_format_value(parameter, {parameter.name: value}) for value in values)
