"""What depends on the values of other parameters: whether a parameter is there, the ends of its range, and which points
are allowed. Pure.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from riseml.spec.config.types import Distribution, Parameter, Scale
from riseml.spec.scalars.formulas import NoValue, parse_comparison, parse_formula

METRICS = "metrics."
"""Begins the name of a metric in a constraint."""

ParameterPoint = tuple[tuple[str, str], ...]
"""The names of the parameters that are there, and a value of each."""


def list_needed(parameter: Parameter) -> tuple[str, ...]:
    """Return the other parameters that decide whether this one is there, and what its ends are."""
    names = [name for name, _ in parameter.when]
    if parameter.distribution is not None:
        for formula in (parameter.distribution.low_formula, parameter.distribution.high_formula):
            names += parse_formula(formula).names if formula else ()
    return tuple(dict.fromkeys(names))


def sort_parameters(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters so that each comes after those that it needs, else in the order of the file."""
    by_name = {parameter.name: parameter for parameter in parameters}
    ordered: dict[str, Parameter] = {}

    def add_parameter(parameter: Parameter, above: tuple[str, ...]) -> None:
        for name in list_needed(parameter):
            if name in by_name and name not in ordered and name not in above:
                add_parameter(by_name[name], (*above, name))
        ordered.setdefault(parameter.name, parameter)

    for parameter in parameters:
        add_parameter(parameter, (parameter.name,))
    return tuple(ordered.values())


def find_circle(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """Return the names of parameters that need each other, from one of them back to itself; empty: there are none."""
    needs = {parameter.name: list_needed(parameter) for parameter in parameters}
    finished_names: set[str] = set()

    def follow_needs(names: tuple[str, ...]) -> tuple[str, ...]:
        for name in needs.get(names[-1], ()):
            if name in names:
                return (*names[names.index(name) :], name)
            if name not in finished_names and (circle := follow_needs((*names, name))):
                return circle
        finished_names.add(names[-1])
        return ()

    return next((circle for name in needs if (circle := follow_needs((name,)))), ())


def is_there(parameter: Parameter, texts: Mapping[str, str]) -> bool:
    """Return True for a parameter whose conditions hold. One that needs an absent parameter is absent, too."""
    return all(texts.get(name) in values for name, values in parameter.when)


def _keep_present(ordered: Sequence[Parameter], point: ParameterPoint) -> ParameterPoint:
    """Return a point without the parameters that are not there. `ordered`: as `sort_parameters` returns them."""
    texts = dict(point)
    present: dict[str, str] = {}
    for parameter in ordered:
        if is_there(parameter, present):
            present[parameter.name] = texts[parameter.name]
    return tuple(pair for pair in point if pair[0] in present)


def meets_constraints(constraints: Iterable[str], point: ParameterPoint) -> bool:
    """Return True for a point that is allowed. A constraint on a parameter that is not there holds."""
    texts = dict(point)
    comparisons = (parse_comparison(text) for text in constraints)
    return all(comparison.holds(texts) for comparison in comparisons if texts.keys() >= set(comparison.names))


def list_constrained_metrics(parameters: Sequence[Parameter], constraints: Iterable[str]) -> tuple[str, ...]:
    """Return the metrics that constraints name: `latency` of `metrics.latency <= 50`. A parameter of this name comes
    first.
    """
    names = {parameter.name for parameter in parameters}
    used = (name for text in constraints for name in parse_comparison(text).names if name not in names)
    return tuple(dict.fromkeys(name.removeprefix(METRICS) for name in used if name.startswith(METRICS)))


def measure_excess(constraints: Iterable[str], point: ParameterPoint, metrics: Mapping[str, float]) -> float:
    """Return by how much a trial fails its constraints; 0: it meets all.

    Args:
        constraints: of the search; those on a parameter that is not there hold.
        point: of the trial.
        metrics: its last values.
    """
    texts = {**{f"{METRICS}{name}": repr(value) for name, value in metrics.items()}, **dict(point)}
    comparisons = (parse_comparison(text) for text in constraints)
    return sum(named.measure_excess(texts) for named in comparisons if texts.keys() >= set(named.names))


def may_be_there(parameter: Parameter, by_name: Mapping[str, Parameter]) -> bool:
    """Return True for a parameter whose conditions hold with some values of the others: an option of the command line
    may have left them one value. The conditions must not be in a circle.
    """
    return all(
        name in by_name and set(by_name[name].values).intersection(texts) and may_be_there(by_name[name], by_name)
        for name, texts in parameter.when
    )


def combine_values(
    parameters: Sequence[Parameter], values: Iterable[Sequence[str]], constraints: Sequence[str] = ()
) -> Iterator[ParameterPoint]:
    """Yield every allowed combination, the last parameter varying fastest.

    Args:
        parameters: in the order of the file.
        values: those of each parameter.
        constraints: what every combination meets.
    """
    names = [parameter.name for parameter in parameters]
    points: Iterable[ParameterPoint] = (tuple(zip(names, row, strict=True)) for row in itertools.product(*values))
    if any(parameter.when for parameter in parameters):
        ordered = sort_parameters(parameters)
        points = dict.fromkeys(_keep_present(ordered, point) for point in points)
    return (point for point in points if meets_constraints(constraints, point))


def list_defaults(parameters: Sequence[Parameter], point: ParameterPoint) -> dict[str, str]:
    """Return the defaults of the parameters that are not there: what their placeholders become."""
    present = dict(point)
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.default is not None and parameter.name not in present
    }


def find_ends(distribution: Distribution, texts: Mapping[str, str]) -> tuple[float, float]:
    """Return the smallest and the largest number of a distribution with these values of other parameters.

    Raises:
        NoValue: a formula has no value with them, or no number lies between the ends.
    """
    low = parse_formula(distribution.low_formula).compute(texts) if distribution.low_formula else distribution.low
    high = parse_formula(distribution.high_formula).compute(texts) if distribution.high_formula else distribution.high
    if distribution.scale is Scale.INT:
        low = math.ceil(low)
        high = math.floor(high)
    if low > high:
        raise NoValue(f"min {low:g} is more than max {high:g}")
    if distribution.scale is Scale.LOG and low <= 0:
        raise NoValue(f"min {low:g} has no magnitude")
    if distribution.by_magnitude and low < 1:
        raise NoValue(f"min {low:g} is less than 1, and has no magnitude")
    return low, high
