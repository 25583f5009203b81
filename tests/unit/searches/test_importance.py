"""The parameter that decides the value comes first, and with too few trials none does."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest

from riseml.model import SearchPlan, Trial, TrialOutcome
from riseml.searches.importance import FEWEST_TRIALS, Importances, find_importances
from riseml.searches.propose import Proposer
from riseml.spec.config.types import Distribution, Goal, Parameter, PopulationRule, Scale, SearchMethod
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


def find_only(plan: SearchPlan, trials: list[Trial]) -> Importances:
    """Return the only table of a search with one objective and without conditions."""
    (table,) = find_importances(plan, trials)
    return table


@pytest.mark.parametrize("goal", list(Goal))
def test_the_parameter_that_decides_comes_first(goal: Goal) -> None:
    plan = make_plan(goal=goal)
    found = find_only(plan, make_trials(plan, 40))
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
    found = find_only(plan, [*failed, *unlike, *trials[3:]])
    assert (found.counted, found.parameters) == (9, ())
    assert found.message == "9 of the 10 trials that this takes have a value."
    assert find_only(plan, trials).message == ""


def test_equal_values_and_single_values_tell_nothing() -> None:
    plan = make_plan()
    same = [replace(one, value=0.5) for one in make_trials(plan, 20)]
    assert "do not differ enough" in find_only(plan, same).message
    assert "more than one value" in find_only(make_plan((EPOCHS,)), same).message
    population = replace(plan, search=replace(plan.search, pbt=PopulationRule()))
    assert "files of earlier trials" in find_only(population, make_trials(plan, 20)).message


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
    found = find_only(plan, trials)
    assert found.parameters[0][0] == "units"


def test_each_objective_has_its_own_importances() -> None:
    goals = (("high", Goal.MAXIMIZE), ("low", Goal.MINIMIZE))
    plan = make_plan((LR, UNITS, LAYERS))
    plan = replace(plan, search=replace(plan.search, metrics=goals))
    trials = []
    for trial in make_trials(make_plan((LR, UNITS, LAYERS)), 60):
        point = dict(trial.point)
        scores = (float(point["units"]), abs(math.log10(float(point["lr"])) + 3))
        trials.append(replace(trial, value=scores[0], values=scores, outcome=TrialOutcome.COMPLETE))
    high, low = find_importances(plan, trials)
    assert [(one.metric, one.goal, one.counted) for one in (high, low)] == [
        ("high", goals[0][1], 60),
        ("low", goals[1][1], 60),
    ]
    assert (high.parameters[0][0], low.parameters[0][0]) == ("units", "lr")
    assert high.parameters[0][1] > 0.5 and low.parameters[0][1] > 0.5


def test_parameters_of_a_condition_are_compared_over_the_trials_that_have_them() -> None:
    momentum = Parameter(
        "momentum", (), Distribution(Scale.UNIFORM, 0, 0.99), when=(("optimizer", ("sgd", "nag")),), default="0"
    )
    space = (Parameter("optimizer", ("adam", "sgd", "nag")), LR, momentum)
    plan, random = make_plan(space), Random(5)
    trials = []
    for number in range(1, 91):
        optimizer = random.choice(("adam", "sgd", "nag"))
        lr, share = random.uniform(1e-5, 0.1), random.random()
        own = () if optimizer == "adam" else (("momentum", f"{share * 0.99:.6f}"),)
        point = (("optimizer", optimizer), ("lr", f"{lr:.6f}"), *own)
        value = share if own else 0.5
        trials.append(Trial(number, number, point, 0, outcome=TrialOutcome.COMPLETE, told=number, value=value))
    every, some = find_importances(plan, trials)
    assert (every.when, every.counted, {name for name, _ in every.parameters}) == ("", 90, {"optimizer", "lr"})
    count = sum("momentum" in dict(trial.point) for trial in trials)
    assert (some.when, some.counted) == ("optimizer is sgd or nag", count)
    assert some.parameters[0][0] == "momentum" and some.parameters[0][1] > 0.5
    assert {name for name, _ in some.parameters} == {"momentum", "optimizer", "lr"}
    few = [trial for trial in trials if dict(trial.point)["optimizer"] == "adam"]
    assert find_importances(plan, few)[1].message == "0 of the 10 trials that this takes have a value."
    nag = [trial for trial in trials if dict(trial.point)["optimizer"] == "nag"]
    assert {name for name, _ in find_importances(plan, nag)[1].parameters} == {"momentum", "lr"}, "one optimizer"
