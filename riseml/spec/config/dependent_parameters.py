"""Parameters that depend on others: `when`, formulas in the ends of a distribution, and what `run` needs of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from riseml.spec.config.conditions import find_circle, find_ends
from riseml.spec.config.types import Distribution, Parameter, Scale
from riseml.spec.scalars.formulas import NoValue, parse_formula, read_amount
from riseml.spec.scalars.placeholders import find_placeholders, variable_name
from riseml.spec.scalars.texts import quote_text
from riseml.spec.schema.near_words import suggest_word
from riseml.spec.yaml.document import ScalarNode
from riseml.spec.yaml.problems import KeyPath, make_problem
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "parameters")
_KINDS = ("values", "range", *(scale.value for scale in Scale))
_MOST_CHECKED = 1_000  # combinations of other values with which the ends of a distribution are computed

When = tuple[tuple[str, tuple[str, ...]], ...]


def check_kind(file: SourceFile, path: KeyPath) -> bool:
    """Return True for a parameter with one kind of values; False after noting that it has none or several."""
    section = file.value_at(path)
    if not isinstance(section, dict):
        return True
    kinds = [key for key in section if key in _KINDS]
    if len(kinds) > 1:
        choice = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
        file.refuse(path, f"has {len(kinds)} kinds of values, and one is allowed", f"keep {choice}")
    elif not kinds and not any((*path, key) in file.bad for key in section):
        file.refuse(path, "has no values", "write `values: [0.5, 0.9]` beside the other keys, or a distribution")
    elif "default" in section and "when" not in section:
        hint = "write the value alone, or add `when`"
        file.refuse_key((*path, "default"), "the parameter is always there, and a default is for one with `when`", hint)
    return len(kinds) == 1


def read_when(file: SourceFile, path: KeyPath) -> tuple[When, str | None]:
    """Return the condition of a parameter and its default."""
    section = file.value_at((*path, "when")) if isinstance(file.value_at(path), dict) else None
    if not isinstance(section, dict):
        return (), None
    conditions = []
    for name in section:
        texts = tuple(str(value) for value in file.items_at((*path, "when", name)).values())
        if texts:
            conditions.append((name, texts))
    default = file.value_at((*path, "default"))
    return tuple(conditions), None if default is None else str(default)


def check_dependencies(file: SourceFile, parameters: Sequence[Parameter], lines: Mapping[KeyPath, str]) -> None:
    """Refuse conditions and formulas that cannot hold, and lines of `run` that need a parameter that may be absent.

    Args:
        file: the file; problems go there.
        parameters: all usable ones.
        lines: the path and the text of every line of `run`.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    before = len(file.problems)
    for parameter in parameters:
        _check_when(file, parameter, by_name)
        for key, formula in _list_formulas(parameter.distribution):
            _check_formula(file, parameter, (key, formula), by_name)
    circle = find_circle(parameters)
    if circle:
        problem = f"the parameters need each other: {' needs '.join(circle)}"
        file.refuse_key((*_PATH, circle[0]), problem, "give one of them values that depend on nothing")
    elif len(file.problems) == before:
        for parameter in parameters:
            _check_ends(file, parameter, by_name)
    _check_lines(file, by_name, lines)


def _list_formulas(distribution: Distribution | None) -> Iterator[tuple[str, str]]:
    if distribution is not None:
        yield from (("min", distribution.low_formula), ("max", distribution.high_formula))


def _check_when(file: SourceFile, parameter: Parameter, by_name: Mapping[str, Parameter]) -> None:
    for name, texts in parameter.when:
        path = (*_PATH, parameter.name, "when", name)
        other = by_name.get(name)
        if other is None:
            _refuse_name(file, path, name, by_name)
        elif other.distribution is not None:
            problem = f"{quote_text(name)} is a distribution, and a condition names values that are known"
            file.refuse_key(path, problem, "write a list or a range for it")
        elif not _is_replaced(file, name):
            wrong = next((text for text in texts if text not in other.values), None)
            if wrong is not None:
                near = suggest_word(wrong, list(other.values))
                hint = f'did you mean "{near}"?' if near else f"it has {', '.join(other.values[:10])}"
                file.refuse(path, f"{quote_text(wrong)} is no value of {quote_text(name)}", hint)


def _is_replaced(file: SourceFile, name: str) -> bool:
    """Return True for a parameter whose value an option gives: conditions on its other values do not hold."""
    return file.find_position((*_PATH, name)).file != file.find_position(("train",)).file


def _refuse_name(file: SourceFile, path: KeyPath, name: str, by_name: Mapping[str, Parameter]) -> None:
    """Refuse the name of a parameter that the file does not have; one that is wrong has its problem already."""
    if name in (file.value_at(_PATH) or {}):
        return
    near = suggest_word(name, list(by_name))
    hint = f'did you mean "{near}"?' if near else f"there is {', '.join(list(by_name)[:10])}"
    file.refuse(path, f"there is no parameter {quote_text(name)}", hint)


def _check_formula(
    file: SourceFile, parameter: Parameter, written: tuple[str, str], by_name: Mapping[str, Parameter]
) -> None:
    key, formula = written
    assert parameter.distribution is not None, "only distributions have formulas"
    path = (*_PATH, parameter.name, parameter.distribution.scale.value, key)
    for name in parse_formula(formula).names if formula else ():
        other = by_name.get(name)
        if other is None:
            _refuse_name(file, path, name, by_name)
        elif problem := describe_no_number(other):
            file.refuse(path, problem, "name parameters whose values are numbers")
        elif set(other.when) - set(parameter.when):
            problem = f"{quote_text(name)} is not there in every experiment that has {quote_text(parameter.name)}"
            file.refuse(path, problem, f"give this parameter the same `when` as {name}")


def describe_no_number(parameter: Parameter) -> str:
    """Return why a formula cannot use a parameter; empty: all its values are numbers."""
    wrong = next((text for text in parameter.values if read_amount(text) is None), None)
    return (
        "" if wrong is None else f"{quote_text(parameter.name)} has the value {quote_text(wrong)}, which is no number"
    )


def _check_ends(file: SourceFile, parameter: Parameter, by_name: Mapping[str, Parameter]) -> None:
    """Refuse a distribution that has no number with some values of the parameters in its formulas. With formulas of
    formulas, and beyond the first thousand combinations, the search leaves such points out.
    """
    distribution = parameter.distribution
    formulas = [formula for _, formula in _list_formulas(distribution) if formula]
    if distribution is None or not formulas:
        return
    names = list(dict.fromkeys(name for formula in formulas for name in parse_formula(formula).names))
    choices = [_list_examples(by_name[name]) for name in names]
    for row in itertools.islice(itertools.product(*choices), _MOST_CHECKED):
        texts = dict(zip(names, row, strict=True))
        try:
            find_ends(distribution, texts)
        except NoValue as no_value:
            values = ", ".join(f"{name}={text}" for name, text in texts.items())
            path = (*_PATH, parameter.name, distribution.scale.value)
            file.refuse(path, f"has no number with {values}: {no_value}", "change the ends")
            return


def _list_examples(parameter: Parameter) -> tuple[str, ...]:
    """Return the values of a parameter, or the ends of its distribution; nothing when these depend on others."""
    distribution = parameter.distribution
    if distribution is None:
        return parameter.values
    if distribution.low_formula or distribution.high_formula:
        return ()
    return f"{distribution.low:.12g}", f"{distribution.high:.12g}"


def _check_lines(file: SourceFile, by_name: Mapping[str, Parameter], lines: Mapping[KeyPath, str]) -> None:
    """Refuse lines of `run`, counts and resources that need a parameter which is not in every experiment."""
    for path, text in file.filled.items():
        for name, _, _ in find_placeholders(text):
            if name in by_name and by_name[name].when:
                problem = (
                    f"{quote_text(name)} has a condition, and counts and resources need a value in each experiment"
                )
                file.refuse(path, problem, "remove its `when`, or write a number here")
    for path, line in lines.items():
        for order, (name, _, _) in enumerate(find_placeholders(line)):
            if name in by_name and by_name[name].when and by_name[name].default is None:
                _refuse_absent(file, path, order, by_name[name])


def _refuse_absent(file: SourceFile, path: KeyPath, order: int, parameter: Parameter) -> None:
    node = file.nodes[path]
    spots = node.spots if isinstance(node, ScalarNode) else ()
    position = spots[order] if order < len(spots) else node.position
    condition = " and ".join(f"{name} is {' or '.join(texts)}" for name, texts in parameter.when)
    variable = variable_name(parameter.name)
    option = parameter.name.rpartition(".")[2]
    hint = f"give it a `default`, or write ${{{variable}:+--{option} ${variable}}} instead"
    problem = f"{quote_text(parameter.name)} is there only when {condition}"
    # not `refuse`, which keeps one problem for each path: a line may have several such placeholders
    file.problems.append(make_problem(position, path, problem, hint))
    file.bad.add(path)
