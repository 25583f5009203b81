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

from riseml.records import dataclass
from riseml.search.propose import freeze_trial, make_study
from riseml.search.space import make_space
from riseml.trials import SearchPlan, Trial, TrialOutcome

if TYPE_CHECKING:
    from optuna.importance import BaseImportanceEvaluator

FEWEST_TRIALS = 10
"""With fewer trials the order of the parameters is chance."""

_FEWEST_BEST = 5  # at least this many trials count as the best ones, as Optuna recommends
_BEST_SHARE = 0.1  # of all trials, when there are more


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
    told = (TrialOutcome.COMPLETE, TrialOutcome.STOPPED)
    known = [one for one in trials if one.outcome in told and one.value is not None and math.isfinite(one.value)]
    found = Importances(len(known), sum(one.outcome is TrialOutcome.STOPPED for one in known))
    space = make_space(plan.parameters)
    if not space:
        return replace(found, message="No parameter of this search has more than one value.")
    if len(known) < FEWEST_TRIALS:
        return replace(found, message=f"{len(known)} of the {FEWEST_TRIALS} trials that this takes have a value.")
    shares = _compute_shares(plan, known)
    if len(set(shares.values())) < min(2, len(space)):  # Optuna gives equal shares where it sees no difference
        return replace(found, message="The values of the trials do not differ enough to tell parameters apart.")
    ordered = sorted(shares.items(), key=lambda one: (-one[1], one[0]))
    return replace(found, parameters=tuple(ordered))


def _compute_shares(plan: SearchPlan, known: Sequence[Trial]) -> dict[str, float]:
    """Return the share of each parameter, together 1; nothing when the values of the trials are equal."""
    from optuna.importance import get_param_importances

    from riseml.search.known_trials import KnownTrials

    if len({trial.value for trial in known}) == 1:
        return {}
    space = make_space(plan.parameters)
    numbered = [replace(one, number=at + 1, outcome=TrialOutcome.COMPLETE) for at, one in enumerate(known)]
    study = make_study(plan, storage=KnownTrials([freeze_trial(plan, one, space) for one in numbered]))
    share = max(_BEST_SHARE, _FEWEST_BEST / len(known))
    return get_param_importances(study, evaluator=_make_evaluator(share))


def _make_evaluator(share: float) -> BaseImportanceEvaluator:
    """Return an evaluator that looks for what makes a trial one of the best `share`."""
    from optuna.importance import PedAnovaImportanceEvaluator

    names = inspect.signature(PedAnovaImportanceEvaluator.__init__).parameters
    name = "target_quantile" if "target_quantile" in names else "baseline_quantile"  # Optuna 5, Optuna 4
    options: dict[str, Any] = {name: share}
    return PedAnovaImportanceEvaluator(**options)
