"""The parameter that decides the value comes first, and with too few trials none does."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from riseml.model import SearchPlan, Trial, TrialOutcome
from riseml.search.importance import FEWEST_TRIALS, find_importances
from riseml.search.propose import Proposer
from riseml.spec.config.types import Goal, Parameter, PopulationRule, SearchMethod
from tests.support.searches import DROPOUT, EPOCHS, LAYERS, LR, UNITS, make_search

SPACE = (LR, UNITS, DROPOUT, LAYERS, EPOCHS)


def make_plan(parameters: tuple[Parameter, ...] = SPACE, goal: Goal = Goal.MAXIMIZE) -> SearchPlan:
    return SearchPlan(replace(make_search(SearchMethod.RANDOM, 40), goal=goal), parameters)


def make_trials(plan: SearchPlan, count: int) -> list[Trial]:
    """Return trials whose value follows from `units` alone; every third was stopped early."""
    proposer, trials = Proposer(plan), list[Trial]()
    for number in range(1, count + 1):
        point = proposer.propose_point(trials)
        assert point is not None
        outcome = TrialOutcome.STOPPED if number % 3 == 0 else TrialOutcome.COMPLETE
        value = float(dict(point).get("units", "0"))
        trials.append(Trial(number, number, point, number - 1, outcome=outcome, told=number, value=value))
    return trials


@pytest.mark.parametrize("goal", list(Goal))
def test_the_parameter_that_decides_comes_first(goal: Goal) -> None:
    plan = make_plan(goal=goal)
    found = find_importances(plan, make_trials(plan, 40))
    assert (found.counted, found.stopped, found.message) == (40, 13, "")
    assert found.parameters[0][0] == "units"
    assert {name for name, _ in found.parameters} == {"lr", "units", "dropout", "layers"}, "epochs has one value"
    assert sum(share for _, share in found.parameters) == pytest.approx(1.0)
    assert found.parameters[0][1] > 0.5


def test_too_few_trials_say_so() -> None:
    plan = make_plan()
    trials = make_trials(plan, FEWEST_TRIALS + 2)
    failed = [replace(one, outcome=TrialOutcome.FAILED, value=None) for one in trials[:2]]
    unlike = [replace(trials[2], value=float("nan"))]
    found = find_importances(plan, [*failed, *unlike, *trials[3:]])
    assert (found.counted, found.parameters) == (9, ())
    assert found.message == "9 of the 10 trials that this takes have a value."
    assert find_importances(plan, trials).message == ""


def test_equal_values_and_single_values_tell_nothing() -> None:
    plan = make_plan()
    same = [replace(one, value=0.5) for one in make_trials(plan, 20)]
    assert "do not differ enough" in find_importances(plan, same).message
    assert "more than one value" in find_importances(make_plan((EPOCHS,)), same).message
    population = replace(plan, search=replace(plan.search, pbt=PopulationRule()))
    assert "files of earlier trials" in find_importances(population, make_trials(plan, 20)).message


def test_a_thousand_trials_of_forty_parameters_are_no_trouble() -> None:
    many = tuple(replace(LR, name=f"rate{at}") for at in range(40))
    plan, random = make_plan((UNITS, *many)), Random(3)
    points = [
        (("units", str(16 * random.randint(1, 16))), *((one.name, f"{random.uniform(1e-4, 0.1):.6f}") for one in many))
        for _ in range(1000)
    ]
    trials = [
        Trial(at, at, point, at - 1, outcome=TrialOutcome.COMPLETE, told=at, value=float(point[0][1]))
        for at, point in enumerate(points, 1)
    ]
    found = find_importances(plan, trials)
    assert found.parameters[0][0] == "units"
