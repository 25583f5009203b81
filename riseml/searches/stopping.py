"""Which trials of a search end early: at some steps, checkpoints, Optuna compares a trial with the others."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from riseml.model import SearchPlan, Trial, TrialOutcome
from riseml.searches.propose import load_optuna, make_study
from riseml.spec.config.types import StopMethod, StopRule

if TYPE_CHECKING:
    import optuna
    from optuna.pruners import BasePruner

Reached = tuple[tuple[int, float], ...]
"""Checkpoints, and the value that counts of a trial up to its first report at or after each of them."""

_ALL_CHECKPOINTS = 128
"""Multiples of `after` that are all checkpoints of the median; each of them is stored and compared."""

_LEAST_COMPARED = 5  # trials that the median of a checkpoint needs; docs/search.md promises it


def find_checkpoints(rule: StopRule, reports: Iterable[tuple[int, float]], reached: Reached) -> Reached:
    """Return the checkpoints that a trial has newly reached.

    Example:
        with asha, `after: 2`, `factor: 3`: the checkpoints are 2, 6, 18, ...

    Args:
        rule: of the search.
        reports: steps and the values that count up to them, in the order in which they came.
        reached: the checkpoints that are known.
    """
    return tuple(_find_new(rule, reports, reached[-1][0] if reached else 0))


def _find_new(rule: StopRule, reports: Iterable[tuple[int, float]], last: int) -> Iterator[tuple[int, float]]:
    for step, value in reports:
        if rule.method is StopMethod.MEDIAN:
            newest = _find_checkpoint(step // rule.after) * rule.after
            if newest > last:
                yield newest, value
                last = newest
            continue
        following = max(rule.after, last * rule.factor)
        while following <= step:
            yield following, value
            last = following
            following = last * rule.factor


def _find_checkpoint(count: int) -> int:
    """Return the last checkpoint of the median at or before `count` times `after`: every one of the first 128, then 8
    until the number has doubled, so that a trial of any length has some hundred.
    """
    if count < _ALL_CHECKPOINTS:
        return count
    distance = 1 << (count.bit_length() - 4)
    return count // distance * distance


class StopJudge:
    """Compares the trials of one search at their checkpoints. Its state follows from the records: another judge that
    follows the same records gives the same answers.

    Args:
        plan: of a search with a rule of stopping.
    """

    def __init__(self, plan: SearchPlan) -> None:
        rule = plan.search.stop
        assert rule is not None, "a judge needs a rule"
        self._rule = rule
        self._study = make_study(plan, pruner=_make_pruner(rule), sampler=load_optuna().samplers.RandomSampler(seed=0))
        self._trials: list[optuna.Trial] = []
        self._known: list[int] = []  # how many checkpoints of each trial were compared
        self._told: set[int] = set()

    def follow(self, trials: Sequence[Trial]) -> None:
        """Take the checkpoints and results of all trials, which are in the order of their numbers, from the records."""
        for index, trial in enumerate(trials):
            if index == len(self._trials):
                self._trials.append(self._study.ask())
                self._known.append(0)
            self.compare(trial.number, trial.reached[self._known[index] :])
            if trial.outcome is not None and index not in self._told:
                self._add_result(index, trial)

    def compare(self, number: int, new: Reached) -> bool:
        """Take new checkpoints of a trial; return True when it should stop at one of them."""
        trial = self._trials[number - 1]
        stops = False
        for step, value in new:
            trial.report(value, step)
            stops = bool(self._is_worse(trial, step, value)) or stops  # some pruners answer with a number of numpy
        self._known[number - 1] += len(new)
        return stops

    def _is_worse(self, trial: optuna.Trial, step: int, value: float) -> bool:
        """Ask the pruner. The median would take the best value of the steps so far; here each has the value that counts
        up to it."""
        if self._rule.method is not StopMethod.MEDIAN:
            return trial.should_prune()
        frozen = copy.copy(self._study.get_trials(deepcopy=False)[trial.number])
        worst = -math.inf if self._study.direction.name == "MAXIMIZE" else math.inf
        frozen.intermediate_values = {step: worst if math.isnan(value) else value}  # nan would be left out there
        return self._study.pruner.prune(self._study, frozen)

    def _add_result(self, index: int, trial: Trial) -> None:
        self._told.add(index)
        states = load_optuna().trial.TrialState
        if trial.outcome is TrialOutcome.COMPLETE and trial.value is not None:
            self._study.tell(index, trial.value)
        else:
            self._study.tell(index, state=states.PRUNED if trial.reached else states.FAIL)


def _make_pruner(rule: StopRule) -> BasePruner:
    pruners = load_optuna().pruners
    pruner: BasePruner
    match rule.method:
        case StopMethod.ASHA:
            pruner = pruners.SuccessiveHalvingPruner(min_resource=rule.after, reduction_factor=rule.factor)
        case StopMethod.HYPERBAND:
            pruner = pruners.HyperbandPruner(
                min_resource=rule.after, max_resource=rule.most or rule.after, reduction_factor=rule.factor
            )
        case StopMethod.MEDIAN:
            pruner = pruners.MedianPruner(n_min_trials=_LEAST_COMPARED)
    return pruner
