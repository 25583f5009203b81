"""Trials that do worse than others are stopped at their checkpoints, also by a new judge."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from riseml.model import SearchPlan, Trial, TrialOutcome
from riseml.searches.stopping import StopJudge, find_checkpoints
from riseml.spec.config.types import Goal, StopMethod, StopRule
from tests.support.searches import LR, make_search

ASHA = StopRule(StopMethod.ASHA, after=2, factor=3)


@pytest.mark.parametrize(
    ("rule", "steps", "reached", "found"),
    [
        (ASHA, [1, 2, 3, 5, 7], (), [(2, 2.0), (6, 7.0)]),
        (ASHA, [20], (), [(2, 20.0), (6, 20.0), (18, 20.0)]),
        (ASHA, [7], ((2, 0.5),), [(6, 7.0)]),
        (ASHA, [1, 2, 3], ((6, 0.5),), []),
        (StopRule(StopMethod.HYPERBAND, after=1, factor=2, most=8), [1, 2, 3, 4], (), [(1, 1.0), (2, 2.0), (4, 4.0)]),
        (StopRule(StopMethod.MEDIAN, after=5), [3, 4, 7, 11, 12, 31], (), [(5, 7.0), (10, 11.0), (30, 31.0)]),
    ],
)
def test_checkpoints(rule: StopRule, steps: list[int], reached: tuple[tuple[int, float], ...], found: object) -> None:
    assert list(find_checkpoints(rule, [(step, float(step)) for step in steps], reached)) == found


def test_the_median_has_some_hundred_checkpoints_at_most() -> None:
    rule = StopRule(StopMethod.MEDIAN, after=2)
    reports = [(step, 0.5) for step in range(1, 20_001)]
    found = find_checkpoints(rule, reports, ())
    steps = [step for step, _ in found]
    assert steps[:129] == [*range(2, 257, 2), 288]
    assert len(steps) == 128 + 6 * 8 + 1
    parts = find_checkpoints(rule, reports[:7000], ())
    assert (*parts, *find_checkpoints(rule, reports[7000:], parts)) == found
    doubled = find_checkpoints(rule, [(1 << power, 0.5) for power in range(50)], ())
    assert [step for step, _ in doubled] == [1 << power for power in range(1, 50)]


def make_trials(*values: float) -> list[Trial]:
    """Return trials that have reached the first checkpoint of ASHA with these values."""
    return [Trial(number, number, (), 0, reached=((2, value),)) for number, value in enumerate(values, 1)]


@pytest.mark.parametrize(("goal", "sign"), [(Goal.MAXIMIZE, 1.0), (Goal.MINIMIZE, -1.0)])
def test_asha_keeps_one_of_three(goal: Goal, sign: float) -> None:
    plan = SearchPlan(make_search(stop=ASHA, goal=goal), (LR,))
    others = make_trials(0.1 * sign, 0.2 * sign, 0.3 * sign, 0.4 * sign, 0.5 * sign)
    for value, stops in ((0.6, False), (0.45, False), (0.05, True)):
        judge = StopJudge(plan)
        judge.follow([*others, Trial(6, 6, (), 0)])
        assert judge.compare(6, ((2, value * sign),)) is stops, value


def test_a_new_judge_gives_the_same_answers() -> None:
    plan = SearchPlan(make_search(stop=ASHA), (LR,))
    one = StopJudge(plan)
    trials = list[Trial]()
    for number, value in enumerate((0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.65, 0.61), 1):
        trials.append(Trial(number, number, (), 0))
        one.follow(trials)
        other = StopJudge(plan)
        other.follow(trials)
        stops = one.compare(number, ((2, value),))
        assert stops is other.compare(number, ((2, value),))
        trials[-1] = replace(trials[-1], reached=((2, value),), stopped=stops)
    assert [trial.number for trial in trials if not trial.stopped] == [1, 3, 5, 7]


def test_a_trial_whose_metric_is_nan_is_stopped() -> None:
    judge = StopJudge(SearchPlan(make_search(stop=ASHA), (LR,)))
    judge.follow([Trial(1, 1, (), 0)])
    assert judge.compare(1, ((2, math.nan),))


def test_the_median_needs_five_trials_that_have_ended() -> None:
    rule = StopRule(StopMethod.MEDIAN, after=2)
    plan = SearchPlan(make_search(stop=rule), (LR,))
    ended = [
        replace(trial, outcome=TrialOutcome.COMPLETE, value=1.0, told=trial.number)
        for trial in make_trials(0.1, 0.2, 0.3, 0.4, 0.5)
    ]
    for others, stops in ((ended[:4], False), (ended, True)):
        judge = StopJudge(plan)
        number = len(others) + 1
        judge.follow([*others, Trial(number, number, (), 0)])
        assert judge.compare(number, ((2, 0.15),)) is stops


def test_the_median_needs_five_values_at_the_checkpoint_itself() -> None:
    """Five trials have ended, and only some of them came as far as this one."""
    rule = StopRule(StopMethod.MEDIAN, after=2)
    plan = SearchPlan(make_search(stop=rule), (LR,))
    for far, stops in ((4, False), (5, True)):
        ended = [
            replace(
                trial,
                outcome=TrialOutcome.COMPLETE,
                value=1.0,
                told=trial.number,
                reached=(*trial.reached, (4, 0.9)) if trial.number <= far else trial.reached,
            )
            for trial in make_trials(0.1, 0.1, 0.1, 0.1, 0.1)
        ]
        judge = StopJudge(plan)
        judge.follow([*ended, Trial(6, 6, (), 0)])
        assert judge.compare(6, ((2, 0.2), (4, 0.3))) is stops


def test_hyperband_stops_some() -> None:
    rule = StopRule(StopMethod.HYPERBAND, after=1, factor=3, most=9)
    judge = StopJudge(SearchPlan(make_search(stop=rule), (LR,)))
    trials = [Trial(number, number, (), 0) for number in range(1, 31)]
    judge.follow(trials)
    stopped = [judge.compare(trial.number, ((1, 1 / trial.number),)) for trial in trials]
    assert 0 < sum(stopped) < 30


@pytest.mark.parametrize(("method", "learns"), [(StopMethod.ASHA, True), (StopMethod.MEDIAN, False)])
def test_stopped_trials_are_compared_with_as_the_documents_say(method: StopMethod, *, learns: bool) -> None:
    """Six trials that were stopped with small values, or with large ones; docs/search.md has this table."""
    plan = SearchPlan(make_search(stop=StopRule(method, after=2)), (LR,))
    verdicts = []
    for sign in (1.0, -1.0):
        stopped = [
            replace(trial, outcome=TrialOutcome.STOPPED, stopped=True, value=0.1, told=trial.number)
            for trial in make_trials(*(sign * value for value in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)))
        ]
        judge = StopJudge(plan)
        judge.follow([*stopped, Trial(7, 7, (), 0)])
        verdicts.append(judge.compare(7, ((2, 0.05),)))
    assert verdicts == ([True, False] if learns else [False, False])


def test_the_median_compares_the_value_that_counts_at_a_step_and_stops_what_has_diverged() -> None:
    """Optuna's own median would take the best value of all steps so far."""
    plan = SearchPlan(make_search(stop=StopRule(StopMethod.MEDIAN, after=2)), (LR,))
    ended = [
        replace(trial, outcome=TrialOutcome.COMPLETE, value=0.5, told=trial.number, reached=((2, 0.5), (4, 0.5)))
        for trial in make_trials(0.1, 0.1, 0.1, 0.1, 0.1)
    ]
    for later, stops in ((0.6, False), (0.4, True), (math.nan, True)):
        judge = StopJudge(plan)
        judge.follow([*ended, Trial(6, 6, (), 0)])
        assert not judge.compare(6, ((2, 0.9),))
        assert judge.compare(6, ((4, later),)) is stops, later
