"""How much each parameter of a search influences the metric, as Optuna computes it (PED-ANOVA).

PED-ANOVA compares how the values of a parameter are spread among the best trials with how they are spread among all of
them: a parameter whose good values are a small part of its range is important. Its time grows with the trials times the
parameters, and no further package is needed.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from riseml.base.records import dataclass
from riseml.model import SearchPlan, Trial, TrialOutcome
from riseml.searches.propose import freeze_trial, make_study
from riseml.searches.space import make_space
from riseml.spec.config.types import Goal, Parameter

if TYPE_CHECKING:
    from optuna.importance import BaseImportanceEvaluator

FEWEST_TRIALS = 10
"""With fewer trials the order of the parameters is chance."""

_FEWEST_BEST = 5  # at least this many trials count as the best ones, as Optuna recommends
_BEST_SHARE = 0.1  # share of all trials, when there are more


@dataclass(frozen=True, slots=True)
class Importances:
    """What is known of the parameters of a search, by one objective and over some of its trials."""

    metric: str
    goal: Goal
    counted: int  # trials that have a value
    stopped: int  # how many of these were stopped early; they count with the best value that they reported
    parameters: tuple[tuple[str, float], ...] = ()  # names and shares of 1, the largest first; empty: see `message`
    message: str = ""  # why there are no importances
    when: str = ""  # `optimizer is sgd`: only the trials with parameters that depend on this; empty: all trials


def find_importances(plan: SearchPlan, trials: Sequence[Trial]) -> tuple[Importances, ...]:
    """Return how much each parameter influences the value of a trial: for each objective, over all trials, and over
    those that have the parameters of one condition.

    A share is one of the trials that it was computed from: those of two conditions are not compared.

    Args:
        plan: of the search.
        trials: all trials so far.
    """
    search = plan.search
    if search.pbt is not None:
        message = "A value of this search also comes from the files of earlier trials."
        judged = _list_judged(trials)
        return (Importances(search.metric, search.goal, len(judged), _count_stopped(judged), message=message),)
    tables: list[Importances] = []
    for place, (metric, goal) in enumerate(search.objectives):
        own = replace(plan, search=replace(search, metric=metric, goal=goal, metrics=()))
        several = bool(search.metrics)
        judged = _list_judged([_choose_value(trial, place) for trial in trials] if several else trials)
        # Optuna compares parameters that every trial has
        always = tuple(parameter for parameter in plan.parameters if not parameter.when)
        tables.append(_find_table(replace(own, parameters=always), judged))
        tables += _find_conditional(own, judged)
    return tuple(tables)


def _choose_value(trial: Trial, place: int) -> Trial:
    """Return a trial with the value of one of several objectives."""
    return replace(trial, value=trial.values[place] if trial.values else None, values=())


def _list_judged(trials: Sequence[Trial]) -> list[Trial]:
    judged = (TrialOutcome.COMPLETE, TrialOutcome.STOPPED)
    return [
        trial for trial in trials if trial.outcome in judged and trial.value is not None and math.isfinite(trial.value)
    ]


def _count_stopped(trials: Sequence[Trial]) -> int:
    return sum(trial.outcome is TrialOutcome.STOPPED for trial in trials)


def _find_conditional(plan: SearchPlan, judged: Sequence[Trial]) -> Iterator[Importances]:
    """Yield a table for each condition: over the trials that have its parameters, with all parameters that each of
    these trials has and in which they differ.
    """
    conditions: dict[tuple[tuple[str, tuple[str, ...]], ...], Parameter] = {}
    for parameter in plan.parameters:
        if parameter.when:
            conditions.setdefault(parameter.when, parameter)
    for when, parameter in conditions.items():
        some = [trial for trial in judged if parameter.name in dict(trial.point)]
        varying = _list_varying(plan, some) if len(some) >= FEWEST_TRIALS else ()
        # with few trials, the parameter itself says how many of them there are
        table = _find_table(replace(plan, parameters=varying or (parameter,)), some)
        words = " and ".join(f"{needed} is {' or '.join(texts)}" for needed, texts in when)
        yield replace(table, when=words)


def _list_varying(plan: SearchPlan, trials: Sequence[Trial]) -> tuple[Parameter, ...]:
    """Return the parameters that all of these trials have, and in which they differ."""
    points = [dict(trial.point) for trial in trials]
    values = {parameter: {point.get(parameter.name) for point in points} for parameter in plan.parameters}
    return tuple(parameter for parameter, texts in values.items() if None not in texts and len(texts) > 1)


def _find_table(plan: SearchPlan, completed: Sequence[Trial]) -> Importances:
    """Return the importances of the parameters of a plan with one objective, over trials that all have them."""
    importances = Importances(plan.search.metric, plan.search.goal, len(completed), _count_stopped(completed))
    space = make_space(plan.parameters)
    if not space:
        return replace(importances, message="No parameter of this search has more than one value.")
    if len(completed) < FEWEST_TRIALS:
        return replace(
            importances, message=f"{len(completed)} of the {FEWEST_TRIALS} trials that this takes have a value."
        )
    shares = _compute_shares(plan, completed)
    if len(set(shares.values())) < min(2, len(space)):  # Optuna gives equal shares where it sees no difference
        return replace(importances, message="The values of the trials do not differ enough to tell parameters apart.")
    ordered = sorted(shares.items(), key=lambda share: (-share[1], share[0]))
    return replace(importances, parameters=tuple(ordered))


def _compute_shares(plan: SearchPlan, completed: Sequence[Trial]) -> dict[str, float]:
    """Return the share of each parameter, together 1; nothing when the values of the trials are equal."""
    from optuna.importance import get_param_importances

    from riseml.searches.known_trials import KnownTrials

    if len({trial.value for trial in completed}) == 1:
        return {}
    space = make_space(plan.parameters)
    numbered = [replace(trial, number=at + 1, outcome=TrialOutcome.COMPLETE) for at, trial in enumerate(completed)]
    study = make_study(plan, storage=KnownTrials([freeze_trial(plan, trial, space) for trial in numbered]))
    share = max(_BEST_SHARE, _FEWEST_BEST / len(completed))
    return get_param_importances(study, evaluator=_make_evaluator(share))


def _make_evaluator(share: float) -> BaseImportanceEvaluator:
    """Return an evaluator that looks for what makes a trial one of the best `share`."""
    from optuna.importance import PedAnovaImportanceEvaluator

    names = inspect.signature(PedAnovaImportanceEvaluator.__init__).parameters
    name = "target_quantile" if "target_quantile" in names else "baseline_quantile"  # Optuna 5, Optuna 4
    options: dict[str, Any] = {name: share}
    return PedAnovaImportanceEvaluator(**options)
