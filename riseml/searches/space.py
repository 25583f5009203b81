"""The parameters of a search as Optuna's distributions, and its values as the texts that jobs get."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from riseml.model import Point, SearchPlan
from riseml.searches.quantiles import find_place, find_place_ends, needs_place, write_number
from riseml.spec.config.conditions import combine_values, is_there, meets_constraints, sort_parameters
from riseml.spec.config.types import Distribution, Parameter, Scale
from riseml.spec.scalars.formulas import NoValue
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

    if needs_place(distribution):
        return FloatDistribution(*find_place_ends(distribution))
    if distribution.by_magnitude:
        return IntDistribution(int(distribution.low), int(distribution.high), log=True)
    if distribution.scale is Scale.INT:
        return IntDistribution(int(distribution.low), int(_find_last(distribution)), step=int(distribution.step or 1))
    if distribution.step is not None:
        return FloatDistribution(distribution.low, float(_find_last(distribution)), step=distribution.step)
    return FloatDistribution(distribution.low, distribution.high, log=distribution.scale is Scale.LOG)


def make_point(parameters: Sequence[Parameter], values: Mapping[str, Any]) -> Point:
    """Return the texts of the values that a sampler chose, of the parameters that are there with them; a parameter with
    one value always has it.

    Raises:
        NoValue: a distribution has no number with these values of other parameters.
    """
    texts: dict[str, str] = {}
    for parameter in sort_parameters(parameters):
        if is_there(parameter, texts):
            texts[parameter.name] = _format_value(parameter, values, texts)
    return tuple((parameter.name, texts[parameter.name]) for parameter in parameters if parameter.name in texts)


def read_point(parameters: Sequence[Parameter], point: Point) -> dict[str, Any]:
    """Return the values of a point as a sampler knows them: the opposite of `make_point`. A parameter that is not in
    the point has none.
    """
    texts = dict(point)
    values: dict[str, Any] = {}
    for parameter in parameters:
        text = texts.get(parameter.name)
        distribution = parameter.distribution
        if text is None:
            continue
        if distribution is None:
            if len(set(parameter.values)) > 1:
                values[parameter.name] = text
        elif needs_place(distribution):
            values[parameter.name] = find_place(distribution, text, texts)
        else:
            values[parameter.name] = int(text) if distribution.scale is Scale.INT else float(text)
    return values


def try_point(plan: SearchPlan, values: Mapping[str, Any], user_values: Point) -> Point | None:
    """Return the point of the values that a sampler chose; None when the search does not allow it.

    Args:
        plan: of the search.
        values: of all parameters.
        user_values: values that the user has chosen; they stay as the user wrote them.
    """
    written = dict(user_values)
    try:
        point = make_point(plan.parameters, {**values, **read_point(plan.parameters, user_values)})
    except NoValue:
        return None
    point = tuple((name, written.get(name, text)) for name, text in point)
    return point if meets_constraints(plan.search.constraints, point) else None


def name_point(parameters: Sequence[Parameter], point: Point) -> Point:
    """Return a point as a sampler would have written it: `1e-3` of a user is the `0.001` of a sampler."""
    return make_point(parameters, read_point(parameters, point))


def count_points(parameters: Sequence[Parameter]) -> int | None:
    """Return how many combinations there are; None when a parameter has too many values to count."""
    counts = [_count_values(parameter) for parameter in parameters]
    return None if None in counts else math.prod(count or 0 for count in counts)


def list_points(parameters: Sequence[Parameter], constraints: Sequence[str] = ()) -> Iterator[Point] | None:
    """Return every allowed point, the last parameter varying fastest; None when there are too many to list."""
    count = count_points(parameters)
    if count is None or count > _MOST_LISTED:
        return None
    return combine_values(parameters, [_list_values(parameter) for parameter in parameters], constraints)


def _format_value(parameter: Parameter, values: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    distribution = parameter.distribution
    if distribution is None:
        return str(values.get(parameter.name, parameter.values[0]))
    value = values[parameter.name]
    if needs_place(distribution):
        return write_number(distribution, value, texts)
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
    if needs_place(distribution):
        return None
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
    return tuple(_format_value(parameter, {parameter.name: value}, {}) for value in values)
