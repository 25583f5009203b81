"""The `search` section."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from riseml.base.metric_names import is_metric_name
from riseml.spec.config.conditions import combine_values, find_circle, may_be_there
from riseml.spec.config.population_section import check_generations, read_population
from riseml.spec.config.repeat import MOST_RUNS
from riseml.spec.config.search_points import read_constraints, read_points
from riseml.spec.config.types import (
    BEST_VALUE,
    LAST_VALUE,
    SEED,
    Goal,
    Parameter,
    SearchMethod,
    SearchSection,
    StopMethod,
    StopRule,
    ValueKind,
    ValueRule,
)
from riseml.spec.scalars.placeholders import find_placeholders
from riseml.spec.scalars.texts import NO_METRIC_NAME, quote_text
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile, read_section

_PATH: KeyPath = ("train", "search")
_STOP: KeyPath = (*_PATH, "stop")
_OBJECTIVE = re.compile(r"(best|last)|(mean|at) *\( *([0-9]{1,15}) *\)")
_MOST_AVERAGED = 10_000  # values whose mean counts
_OBJECTIVES = "write best, last, mean(5) for the mean of the last five values, or at(1000) for the value at step 1000"

Limits = tuple[tuple[tuple[tuple[str, str], ...], ...], tuple[str, ...]]
"""The points that are tried first, and the constraints of all points."""


def _check_counted(file: SourceFile, parameters: Sequence[Parameter]) -> None:
    """Refuse counts and resources that a distribution would choose: each of their values is checked beforehand."""
    drawn = {parameter.name for parameter in parameters if parameter.distribution is not None}
    for path, text in file.filled.items():
        for name, _, _ in find_placeholders(text):
            if name in drawn:
                problem = f"{quote_text(name)} is a distribution, and counts and resources need values that are known"
                file.refuse(path, problem, "write a list or a range for it")


def read_search(file: SourceFile, every: Sequence[Parameter], repeat: int = 0) -> SearchSection | None:
    """Return the `search` section; None when the file has none, or when it is unusable.

    Args:
        file: the file; problems go there.
        every: all parameters.
        repeat: how often each point runs, with the parameter `seed`, which the search does not choose; 0: once, and
        there is no such parameter.
    """
    parameters = [parameter for parameter in every if not repeat or parameter.name != SEED]
    section = file.value_at(_PATH)
    if not isinstance(section, dict):
        return None
    method = file.value_at((*_PATH, "method"))
    objectives = _read_objectives(file)
    if method is None or not objectives:
        return None
    chosen = SearchMethod(method)
    if _is_fixed(file, parameters):
        file.warn(_PATH, "every parameter has one value, so that one experiment runs without a search")
        return None
    _check_counted(file, parameters)
    constraints: tuple[str, ...] = ()
    points: tuple[tuple[tuple[str, str], ...], ...] = ()
    if len(objectives) > 1:
        _check_several(file, chosen)
    rule = read_population(file, chosen, repeat)
    if all(path[:2] != ("train", "parameters") for path in file.bad):
        _check_parameters(file, chosen, parameters)
        constraints = read_constraints(file, chosen, parameters)
        points = read_points(file, chosen, parameters, constraints)
    trials = _read_trials(file, chosen, parameters, (points, constraints))
    if rule is not None:
        check_generations(file, rule, trials, len(points))
    _check_runs(file, trials, repeat)
    return SearchSection(
        method=chosen,
        metric=objectives[0][0],
        goal=objectives[0][1],
        trials=trials,
        seed=file.value_at((*_PATH, "seed")),
        stop=_read_stop(file),
        max_failed=file.value_at((*_PATH, "max_failed")),
        objective=_read_objective(file, BEST_VALUE if rule is None else LAST_VALUE),
        points=points,
        constraints=constraints,
        metrics=objectives if len(objectives) > 1 else (),
        pbt=rule,
    )


def _read_objective(file: SourceFile, default: ValueRule) -> ValueRule:
    path = (*_PATH, "objective")
    text = file.value_at(path)
    if text is None or path in file.bad:
        return default
    match = _OBJECTIVE.fullmatch(text)
    if match is None:
        file.refuse(path, f"{quote_text(text)} says no value of a run", _OBJECTIVES)
        return BEST_VALUE
    if match[1]:
        return ValueRule(ValueKind(match[1]))
    rule = ValueRule(ValueKind(match[2]), int(match[3]))
    if rule.kind is ValueKind.MEAN and not 1 <= rule.number <= _MOST_AVERAGED:
        file.refuse(path, f"mean needs 1 to {_MOST_AVERAGED:,} values, not {rule.number}", "write `mean(5)`")
    return rule


def _read_objectives(file: SourceFile) -> tuple[tuple[str, Goal], ...]:
    """Return the metrics that decide, with their goals; nothing when they are unusable."""
    section = file.value_at((*_PATH, "metrics"))
    metric, goal = (file.value_at((*_PATH, key)) for key in ("metric", "goal"))
    if section is not None and (metric is not None or goal is not None):
        key = "metric" if metric is not None else "goal"
        file.refuse_key(
            (*_PATH, key), "stands beside metrics, which names every objective", f"remove {key}, or metrics"
        )
        return ()
    if isinstance(section, dict):
        goals = file.items_at((*_PATH, "metrics"))
        for path in goals:
            _check_metric(file, path, str(path[-1]))
        if len(section) == 1:
            name, goal = next(iter(section.items()))
            file.refuse(
                (*_PATH, "metrics"), "names one objective", f"write `metric: {name}` and `goal: {goal}` instead"
            )
        return tuple((str(path[-1]), Goal(text)) for path, text in goals.items())
    if metric is None or goal is None:
        return ()
    _check_metric(file, (*_PATH, "metric"), str(metric))
    return ((str(metric), Goal(goal)),)


def _check_metric(file: SourceFile, path: KeyPath, metric: str) -> None:
    if metric == "step":
        problem = "step says where a training is, and is not a metric"
        file.refuse(path, problem, "name a metric that the jobs report")
    elif not is_metric_name(metric):
        problem, hint = NO_METRIC_NAME
        file.refuse(path, problem.format(quote_text(metric)), hint)


def _check_several(file: SourceFile, method: SearchMethod) -> None:
    """Refuse what cannot serve several objectives."""
    if method in (SearchMethod.CMA_ES, SearchMethod.PBT):
        problem = f"{method.value} follows one objective, and here are several"
        file.refuse((*_PATH, "method"), problem, "use `method: tpe`")
    if file.value_at(_STOP) is not None:
        problem = "a trial is stopped by one objective, and here are several"
        file.refuse_key(_STOP, problem, "remove stop, or name one metric")


def _is_fixed(file: SourceFile, parameters: Sequence[Parameter]) -> bool:
    """Return True when options of the command line (`-p lr=0.1`) give every parameter one value: nothing is left to
    search."""
    paths: list[KeyPath] = [("train", "parameters", parameter.name) for parameter in parameters]
    has_option = any(file.find_position(path).file != file.find_position(_PATH).file for path in paths)
    by_name = {parameter.name: parameter for parameter in parameters}
    varies = any(
        parameter.distribution is not None or len(parameter.values) > 1
        for parameter in parameters
        if find_circle(parameters) or may_be_there(parameter, by_name)
    )
    return has_option and not varies


def _check_parameters(file: SourceFile, method: SearchMethod, parameters: Sequence[Parameter]) -> None:
    """Refuse a search without anything to choose, and a grid over numbers without steps."""
    if all(parameter.distribution is None and len(parameter.values) < 2 for parameter in parameters):
        file.refuse_key(_PATH, "there is nothing to search", "give a parameter of train.parameters several values")
    for parameter in parameters:
        if method is SearchMethod.GRID and parameter.distribution is not None:
            path = ("train", "parameters", parameter.name, parameter.distribution.scale.value)
            problem = "a grid tries every combination of values, and a distribution is not a list of them"
            file.refuse_key(path, problem, "write a list or a range, or use another search.method")
    if method is SearchMethod.CMA_ES:
        _check_numbers(file, parameters)


def _check_numbers(file: SourceFile, parameters: Sequence[Parameter]) -> None:
    """Refuse CMA-ES without any distribution, and warn of the lists that it does not learn from."""
    lists = [parameter.name for parameter in parameters if parameter.distribution is None and len(parameter.values) > 1]
    if parameters and all(parameter.distribution is None for parameter in parameters):
        problem = "cma-es moves numbers, and every parameter here is a list or a range"
        file.refuse((*_PATH, "method"), problem, "write uniform, log or int, or use `method: tpe`")
    elif lists:
        listed = ", ".join(quote_text(name) for name in lists)
        problem = f"cma-es takes the values of {listed} at random: it moves numbers, not lists"
        file.warn((*_PATH, "method"), problem, "`method: tpe` learns from lists, too")


def _read_trials(file: SourceFile, method: SearchMethod, parameters: Sequence[Parameter], limits: Limits) -> int:
    trials = file.value_at((*_PATH, "trials"))
    points, constraints = limits
    if method is not SearchMethod.GRID:
        if trials is None and (*_PATH, "trials") not in file.bad:
            file.refuse_key(_PATH, "trials is missing: how many points are tried", "write `trials: 40`")
        elif trials is not None and len(points) > trials:
            problem = f"there are {len(points)} points to try first, and {trials} trials"
            file.refuse((*_PATH, "trials"), problem, f"write `trials: {len(points)}` or more")
        return trials or 1
    if any(path[:2] == ("train", "parameters") for path in file.bad):
        return trials or 1  # a parameter is wrong, and `file` already has that problem
    return _count_grid(file, trials, parameters, constraints)


def _count_grid(
    file: SourceFile, trials: int | None, parameters: Sequence[Parameter], constraints: Sequence[str]
) -> int:
    """Return how many trials a grid makes: as many as it has combinations, or fewer."""
    if any(parameter.when for parameter in parameters) or constraints:
        values = [parameter.values for parameter in parameters]
        count = sum(1 for _ in combine_values(parameters, values, constraints))
    else:
        count = math.prod(len(parameter.values) for parameter in parameters)
    if not count:
        if constraints:
            file.refuse((*_PATH, "constraints"), "no combination of the parameters meets them", "loosen one of them")
        return trials or 1
    if trials is not None and trials > count:
        problem = f"the grid has {count} combinations, and each is tried once"
        file.warn((*_PATH, "trials"), problem, "leave trials out to try all of them")
    return min(trials or count, count)


def _check_runs(file: SourceFile, trials: int, repeat: int) -> None:
    if trials * repeat > MOST_RUNS and not file.bad:
        runs = f"{trials} trials with {repeat} runs each are {trials * repeat:,} experiments"
        problem = f"{runs}; at most {MOST_RUNS:,} are allowed"
        file.refuse_key(("train", "repeat"), problem, "use fewer trials, or fewer runs of each")


def _read_stop(file: SourceFile) -> StopRule | None:
    if file.value_at((*_STOP, "method")) is None:
        return None
    rule = read_section(file, _STOP, StopRule)
    if rule.method is StopMethod.HYPERBAND and rule.most is None and (*_STOP, "most") not in file.bad:
        problem = "most is missing: hyperband divides the steps of a whole trial"
        file.refuse_key(_STOP, problem, "write `most: 81`, or use `method: asha`")
    if rule.most is not None and rule.most < rule.after:
        file.refuse((*_STOP, "most"), f"most {rule.most} is less than after {rule.after}", "swap them")
    for key, users in (("most", (StopMethod.HYPERBAND,)), ("factor", (StopMethod.ASHA, StopMethod.HYPERBAND))):
        if file.value_at((*_STOP, key)) is not None and rule.method not in users:
            file.warn((*_STOP, key), f"{rule.method.value} has no use for it", "remove it")
    return rule
