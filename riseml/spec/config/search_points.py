"""`search.points` and `search.constraints`: what a search tries first, and what it never tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from riseml.spec.config.conditions import METRICS, find_ends, is_there, list_needed, meets_constraints, sort_parameters
from riseml.spec.config.dependent_parameters import describe_no_number
from riseml.spec.config.types import Distribution, Parameter, Scale, SearchMethod
from riseml.spec.scalars.formulas import NoValue, parse_comparison, read_amount
from riseml.spec.scalars.texts import BadText, quote_text
from riseml.spec.schema.near_words import suggest_word
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_POINTS: KeyPath = ("train", "search", "points")
_CONSTRAINTS: KeyPath = ("train", "search", "constraints")

Pairs = tuple[tuple[str, str], ...]


def read_constraints(file: SourceFile, method: SearchMethod, parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """Return the comparisons that every point, or what it reports, meets; problems go to `file`."""
    by_name = {parameter.name: parameter for parameter in parameters}
    texts = []
    for path, text in file.items_at(_CONSTRAINTS).items():
        try:
            names = parse_comparison(text).names
        except BadText as bad:
            file.refuse(path, bad.problem, bad.hint)
            continue
        for name in names:
            if name not in by_name and name.startswith(METRICS):
                _check_metric(file, path, method)
            elif name not in by_name:
                near = suggest_word(name, list(by_name))
                hint = f'did you mean "{near}"?' if near else f"a metric is written {METRICS}{name}"
                file.refuse(path, f"there is no parameter {quote_text(name)}", hint)
            elif problem := describe_no_number(by_name[name]):
                file.refuse(path, problem, "name parameters whose values are numbers")
        if not names:
            file.refuse(path, f"{quote_text(text)} names no parameter", "write it like units * layers <= 512")
        if path not in file.bad:
            texts.append(text)
    return tuple(texts)


def _check_metric(file: SourceFile, path: KeyPath, method: SearchMethod) -> None:
    if method is SearchMethod.CMA_ES:
        problem = "cma-es does not learn what metrics must be"
        file.refuse(path, problem, "use `method: tpe`, or compare parameters only")


def read_points(
    file: SourceFile, method: SearchMethod, parameters: Sequence[Parameter], constraints: Sequence[str]
) -> tuple[Pairs, ...]:
    """Return the points that are tried first, in the order of the parameters; problems go to `file`."""
    if file.value_at(_POINTS) is None:
        return ()
    if method is SearchMethod.GRID:
        problem = "a grid tries every combination in its order"
        file.refuse_key(_POINTS, problem, "remove the points, or use another search.method")
        return ()
    points: dict[Pairs, KeyPath] = {}
    for path in file.items_at(_POINTS):
        point = _read_point(file, path, parameters)
        if any(bad[: len(path)] == path for bad in file.bad):
            continue
        if point in points:
            file.refuse(path, "the point appears twice", "remove it: no point is tried twice")
        elif not meets_constraints(constraints, point):
            file.refuse(path, "the point does not meet search.constraints", "remove it, or change it")
        points.setdefault(point, path)
    return tuple(points)


def _read_point(file: SourceFile, path: KeyPath, parameters: Sequence[Parameter]) -> Pairs:
    section = file.value_at(path)
    written = {str(name): str(section[name]) for name in section if (*path, name) not in file.bad}
    by_name = {parameter.name: parameter for parameter in parameters}
    for name in written:
        if name not in by_name and name not in (file.value_at(("train", "parameters")) or {}):
            near = suggest_word(name, list(by_name))
            hint = f'did you mean "{near}"?' if near else "name a parameter of `parameters`"
            file.refuse_key((*path, name), f"there is no parameter {quote_text(name)}", hint)
    for parameter in sort_parameters(parameters):
        if parameter.name in written:
            _check_value(file, (*path, parameter.name), parameter, written)
    return tuple((parameter.name, written[parameter.name]) for parameter in parameters if parameter.name in written)


def _check_value(file: SourceFile, path: KeyPath, parameter: Parameter, written: Mapping[str, str]) -> None:
    """Refuse a value that the search could not choose."""
    text = written[parameter.name]
    lacking = [name for name in list_needed(parameter) if name not in written]
    if lacking:
        problem = f"{quote_text(parameter.name)} depends on {quote_text(lacking[0])}, which the point does not name"
        file.refuse(path, problem, f"add {lacking[0]} to the point")
    elif not is_there(parameter, written):
        condition = " and ".join(f"{name} is {' or '.join(texts)}" for name, texts in parameter.when)
        file.refuse(path, f"{quote_text(parameter.name)} is there only when {condition}", "remove it from the point")
    elif parameter.distribution is not None:
        problem = _describe_wrong_number(parameter.distribution, text, written)
        if problem:
            file.refuse(path, problem, f"write a number that `parameters.{parameter.name}` has")
    elif text not in parameter.values:
        near = suggest_word(text, list(parameter.values))
        hint = f'did you mean "{near}"?' if near else f"it has {', '.join(parameter.values[:10])}"
        file.refuse(path, f"{quote_text(text)} is no value of {quote_text(parameter.name)}", hint)


def _describe_wrong_number(distribution: Distribution, text: str, written: Mapping[str, str]) -> str:
    """Return why a distribution does not have a number; empty: it has it."""
    number = read_amount(text)
    if number is None:
        return f"must be a number, not {quote_text(text)}"
    try:
        low, high = find_ends(distribution, written)
    except NoValue as no_value:
        return f"there is no number with this point: {no_value}"
    if not low <= number <= high:
        return f"{text} is not between {low:g} and {high:g}"
    if distribution.scale is Scale.INT and number != int(number):
        return f"must be a whole number, not {text}"
    step = distribution.step
    if step is not None and (Decimal(text) - Decimal(repr(low))) % Decimal(repr(step)):
        return f"{text} is not on a step: {low:g}, {low + step:g}, ..."
    return ""
