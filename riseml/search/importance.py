"""How much each parameter of a search influences the metric, as Optuna computes it (PED-ANOVA).

PED-ANOVA compares how the values of a parameter are spread among the best trials with how they are spread among all of
them: a parameter whose good values are a small part of its range is important. Its time grows with the trials times the
parameters, and no further package is needed.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from riseml.base.records import dataclass
from riseml.model import SearchPlan, Trial, TrialOutcome
from riseml.search.propose import freeze_trial, make_study
from riseml.search.space import make_space

if TYPE_CHECKING:
    from optuna.importance import BaseImportanceEvaluator

FEWEST_TRIALS = 10
"""With fewer trials the order of the parameters is chance."""

_FEWEST_BEST = 5  # at least this many trials count as the best ones, as Optuna recommends
_BEST_SHARE = 0.1  # share of all trials, when there are more


@dataclass(frozen=True, slots=True)
class Importances:
    """What is known of the parameters of a search."""

    counted: int  # trials that have a value
    stopped: int  # how many of these were stopped early; they count with the best value that they reported
    parameters: tuple[tuple[str, float], ...] = ()  # names and shares of 1, the largest first; empty: see `message`
    message: str = ""  # why there are no importances


def find_importances(plan: SearchPlan, trials: Sequence[Trial]) -> Importances:
    """Return how much each parameter influences the value of a trial.

    Args:
        plan: of the search.
        trials: all trials so far.
    """
    judged = (TrialOutcome.COMPLETE, TrialOutcome.STOPPED)
    completed = [
        trial for trial in trials if trial.outcome in judged and trial.value is not None and math.isfinite(trial.value)
    ]
    importances = Importances(len(completed), sum(trial.outcome is TrialOutcome.STOPPED for trial in completed))
    if plan.search.pbt is not None:
        return replace(importances, message="A value of this search also comes from the files of earlier trials.")
    if plan.search.metrics:
        return replace(importances, message="With several objectives no parameter decides alone.")
    # Optuna compares parameters that every trial has
    space = make_space([parameter for parameter in plan.parameters if not parameter.when])
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

    from riseml.search.known_trials import KnownTrials

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
