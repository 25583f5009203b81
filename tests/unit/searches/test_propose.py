"""Points are a function of the seed and of the results, and no point comes twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.states import Wanted
from riseml.model import Point, SearchPlan, SearchRecord, Trial, TrialOutcome
from riseml.searches.propose import Proposer, choose_first_point
from riseml.spec.config.types import Distribution, Goal, Parameter, Scale, SearchMethod
from tests.support.searches import DROPOUT, EPOCHS, LAYERS, LR, UNITS, make_search

SPACE = (LR, UNITS, DROPOUT, LAYERS, EPOCHS)
DEPENDENT = (
    Parameter("momentum", (), Distribution(Scale.UNIFORM, 0, 0.99), when=(("optimizer.name", ("sgd",)),), default="0"),
    Parameter("optimizer.name", ("adam", "sgd")),
    Parameter("units", (), Distribution(Scale.INT, 16, 0, 16, high_formula="{{layers}} * 64")),
    Parameter("lr", (), Distribution(Scale.LOG, 1e-5, 0, high_formula="0.2 / layers")),
    LAYERS,
    Parameter("noise", (), Distribution(Scale.NORMAL, -6, 6, mean=0, sd=1)),
    EPOCHS,
)
CONSTRAINTS = ("units * layers <= 512", "momentum + noise < 1")
POINTS: tuple[Point, ...] = (
    (("optimizer.name", "adam"), ("units", "64"), ("lr", "1e-3"), ("layers", "2"), ("noise", "0.5"), ("epochs", "10")),
    (("momentum", "0.90"), ("optimizer.name", "sgd"), ("noise", "-1")),
    (("lr", "0.0010"), ("layers", "4")),
)
CHOSEN = [SearchMethod.RANDOM, SearchMethod.TPE, SearchMethod.CMA_ES]


def score(point: Point) -> float:
    """Return what a trial reports: best at lr 0.001 and 128 units."""
    values = dict(point)
    lr, units = float(values.get("lr", 0)), float(values.get("units", 0))
    return -abs(lr - 0.001) * 100 - abs(units - 128) / 256


def run(plan: SearchPlan, count: int, *, together: int, fresh: bool) -> list[Point]:
    """Return the points of a search whose trials run several at a time, and end in their order."""
    proposer, trials = Proposer(plan), list[Trial]()
    for number in range(1, count + 1):
        proposer = Proposer(plan) if fresh else proposer
        point = proposer.propose_point(tuple(trials))
        assert point is not None
        told = sum(trial.told is not None for trial in trials)
        trials.append(Trial(number, number, point, told))
        if number - told >= together:
            done = replace(trials[told], outcome=TrialOutcome.COMPLETE, told=told + 1, value=score(trials[told].point))
            trials[told] = replace(done, outcome=TrialOutcome.FAILED, value=None) if number % 9 == 0 else done
    return [trial.point for trial in trials]


@pytest.mark.parametrize("method", CHOSEN)
@pytest.mark.parametrize("together", [1, 3])
def test_the_same_seed_and_order_give_the_same_points_in_another_process(method: SearchMethod, together: int) -> None:
    plan = SearchPlan(make_search(method, 14), SPACE)
    points = run(plan, 14, together=together, fresh=False)
    assert points == run(plan, 14, together=together, fresh=True)
    assert len(set(points)) == 14, "no worker gets a point that another one tries or has tried"
    other = SearchPlan(replace(plan.search, seed=8), SPACE)
    assert points != run(other, 14, together=together, fresh=False)


def make_dependent_plan(method: SearchMethod, trials: int) -> SearchPlan:
    search = replace(make_search(method, trials), points=POINTS, constraints=CONSTRAINTS)
    return SearchPlan(search, DEPENDENT)


@pytest.mark.parametrize("method", CHOSEN)
@pytest.mark.parametrize("together", [1, 3])
def test_dependent_parameters_given_points_and_constraints_follow_from_the_records(
    method: SearchMethod, together: int
) -> None:
    plan = make_dependent_plan(method, 16)
    points = run(plan, 16, together=together, fresh=False)
    assert points == run(plan, 16, together=together, fresh=True)
    assert len(set(points)) == 16
    assert points[0] == POINTS[0]
    assert set(POINTS[1]) <= set(points[1])
    assert set(POINTS[2]) <= set(points[2])
    for point in points:
        values = dict(point)
        assert ("momentum" in values) == (values["optimizer.name"] == "sgd")
        assert 16 <= int(values["units"]) <= int(values["layers"]) * 64
        assert 1e-5 <= float(values["lr"]) <= 0.2 / int(values["layers"])
        assert int(values["units"]) * int(values["layers"]) <= 512
        assert float(values.get("momentum", -9)) + float(values["noise"]) < 1
    assert {dict(point)["optimizer.name"] for point in points} == {"adam", "sgd"}


def test_tpe_learns_what_metrics_must_be() -> None:
    """The score grows with lr, and trials with an lr above 0.001 fail the constraint."""

    def late(constraints: tuple[str, ...]) -> list[float]:
        plan = SearchPlan(replace(make_search(SearchMethod.TPE, 40), constraints=constraints), (LR,))
        trials: list[Trial] = []
        for number in range(1, 41):
            point = Proposer(plan).propose_point(tuple(trials))
            assert point is not None
            lr = float(dict(point)["lr"])
            made = Trial(number, number, point, number - 1, outcome=TrialOutcome.COMPLETE, told=number, value=lr)
            trials.append(replace(made, excess=max(0.0, lr - 0.001) if constraints else 0.0))
        return [float(dict(trial.point)["lr"]) for trial in trials[20:]]

    assert sum(lr > 0.01 for lr in late(())) >= 12
    assert sum(lr > 0.01 for lr in late(("metrics.lr <= 0.001",))) <= 4


def run_several(plan: SearchPlan, count: int, *, fresh: bool) -> list[Trial]:
    """Return the trials of a search with two objectives: a small distance of lr from 0.001, and few units."""
    proposer, trials = Proposer(plan), list[Trial]()
    for number in range(1, count + 1):
        proposer = Proposer(plan) if fresh else proposer
        point = proposer.propose_point(tuple(trials))
        assert point is not None
        values = dict(point)
        costs = (abs(float(values["lr"]) - 0.001), float(values["units"]))
        made = Trial(number, number, point, number - 1, outcome=TrialOutcome.COMPLETE, told=number, value=costs[0])
        trials.append(replace(made, values=costs))
    return trials


@pytest.mark.parametrize("method", [SearchMethod.RANDOM, SearchMethod.TPE])
def test_several_objectives_follow_from_the_records(method: SearchMethod) -> None:
    goals = (("distance", Goal.MINIMIZE), ("units", Goal.MINIMIZE))
    plan = SearchPlan(replace(make_search(method, 30), metrics=goals), (LR, UNITS))
    trials = run_several(plan, 30, fresh=False)
    assert trials == run_several(plan, 30, fresh=True)
    front = SearchRecord(1, "paul", 1, plan, 1, Wanted.RUN, 30, tuple(trials)).list_front()
    least = {min(trials, key=lambda trial: trial.values[at]).number for at in (0, 1)}
    assert least & {trial.number for trial in front}
    for trial in front:
        assert not any(
            other.values != trial.values and other.values[0] <= trial.values[0] and other.values[1] <= trial.values[1]
            for other in trials
        )


def test_tpe_learns_where_ends_and_presence_depend_on_others() -> None:
    def late(method: SearchMethod) -> float:
        plan = SearchPlan(make_search(method, 40), DEPENDENT)
        points = run(plan, 40, together=1, fresh=True)[25:]
        return sum(map(score, points)) / len(points)

    assert late(SearchMethod.TPE) > late(SearchMethod.RANDOM) + 0.1


@pytest.mark.parametrize("method", CHOSEN)
def test_a_given_point_is_not_tried_again_in_another_writing(method: SearchMethod) -> None:
    numbers = Parameter("units", (), Distribution(Scale.UNIFORM, 0, 1, 0.5))
    given = ((("units", "5e-1"),),)
    plan = SearchPlan(replace(make_search(method, 3), points=given), (numbers,))
    points = run(plan, 3, together=1, fresh=True)
    assert points[0] == given[0]
    assert sorted(dict(point)["units"] for point in points[1:]) == ["0.0", "1.0"]
    trials = tuple(Trial(number, number, point, 0) for number, point in enumerate(points, 1))
    assert Proposer(plan).propose_point(trials) is None


@pytest.mark.parametrize("method", [*CHOSEN, SearchMethod.GRID])
def test_a_space_with_conditions_and_constraints_ends(method: SearchMethod) -> None:
    parameters = (
        Parameter("optimizer", ("adam", "sgd")),
        Parameter("momentum", ("1", "2"), when=(("optimizer", ("sgd",)),)),
        LAYERS,
    )
    plan = SearchPlan(replace(make_search(method, 9), constraints=("momentum * layers <= 6",)), parameters)
    points = run(plan, 8, together=2, fresh=True)
    assert len(set(points)) == 8, "adam with 3, sgd with 1 * 3 and 2 * 2"
    trials = tuple(Trial(number, number, point, 0) for number, point in enumerate(points, 1))
    assert Proposer(plan).propose_point(trials) is None


def test_a_search_that_allows_no_point_says_so() -> None:
    numbers = Parameter("units", (), Distribution(Scale.UNIFORM, 0, 1))
    plan = SearchPlan(replace(make_search(SearchMethod.TPE, 3), constraints=("units > 2",)), (numbers,))
    with pytest.raises(LookupError):
        choose_first_point(plan)


def test_tpe_learns_and_random_does_not() -> None:
    def late(method: SearchMethod) -> float:
        points = run(SearchPlan(make_search(method, 40), SPACE), 40, together=1, fresh=True)[25:]
        return sum(map(score, points)) / len(points)

    assert late(SearchMethod.TPE) > late(SearchMethod.RANDOM) + 0.1


@pytest.mark.parametrize("method", CHOSEN)
def test_every_combination_comes_once_and_then_none(method: SearchMethod) -> None:
    parameters = (LAYERS, Parameter("depth", ("1", "2")), EPOCHS)
    plan = SearchPlan(make_search(method, 9), parameters)
    points = run(plan, 6, together=3, fresh=True)
    assert len(set(points)) == 6
    trials = tuple(Trial(number, number, point, 0) for number, point in enumerate(points, 1))
    assert Proposer(plan).propose_point(trials) is None


def test_an_evolution_strategy_whose_proposals_repeat_tries_every_combination() -> None:
    """It converges, so that all its proposals may be points that were tried; the search takes another one each time."""
    numbers = Distribution(Scale.INT, 1, 3)
    parameters = (Parameter("units", (), numbers), Parameter("layers", (), numbers))
    plan = SearchPlan(make_search(SearchMethod.CMA_ES, 9), parameters)
    assert len(set(run(plan, 9, together=1, fresh=False))) == 9


def test_a_search_whose_proposals_repeat_in_a_large_space_goes_on_at_random() -> None:
    """The best number is the least one, which all proposals repeat; there are too many others to list."""
    numbers = Distribution(Scale.INT, 1, 100_000, by_magnitude=True)
    plan = SearchPlan(make_search(SearchMethod.TPE, 25), (Parameter("lr", (), numbers),))
    assert len(set(run(plan, 25, together=1, fresh=False))) == 25


def test_a_grid_is_tried_in_its_order() -> None:
    plan = SearchPlan(make_search(SearchMethod.GRID, 6), (LAYERS, Parameter("depth", ("1", "2"))))
    points = run(plan, 6, together=2, fresh=True)
    assert points[:3] == [
        (("layers", "2"), ("depth", "1")),
        (("layers", "2"), ("depth", "2")),
        (("layers", "3"), ("depth", "1")),
    ]
    assert Proposer(plan).propose_point(tuple(Trial(n, n, point, 0) for n, point in enumerate(points, 1))) is None


def test_points_do_not_depend_on_what_a_proposer_remembers() -> None:
    plan = SearchPlan(make_search(SearchMethod.TPE, 40), SPACE)
    points, proposer, trials = run(plan, 30, together=2, fresh=True), Proposer(plan), list[Trial]()
    for number, point in enumerate(points, 1):
        stopped = TrialOutcome.STOPPED if number % 3 == 0 else TrialOutcome.COMPLETE
        reached = ((2, score(point) - 1), (6, score(point)))
        trials.append(Trial(number, number, point, 0))
        proposer.propose_point(trials)  # as one that runs
        trials[-1] = replace(trials[-1], outcome=stopped, value=score(point), told=number, reached=reached)
        assert proposer.propose_point(trials) == Proposer(plan).propose_point(trials)


@pytest.mark.parametrize(
    ("method", "from_values", "from_points"),
    [(SearchMethod.CMA_ES, True, True), (SearchMethod.TPE, False, True), (SearchMethod.RANDOM, False, False)],
)
def test_points_depend_on_stopped_trials_as_the_documents_say(
    method: SearchMethod, *, from_values: bool, from_points: bool
) -> None:
    """The same search, with the sign of every stopped trial's values changed, and with those trials failed instead;
    docs/search.md has this table."""
    points = _run_with_stops(method)
    assert (points != _run_with_stops(method, sign=-1.0)) is from_values
    assert (points != _run_with_stops(method, TrialOutcome.FAILED)) is from_points


def _run_with_stops(
    method: SearchMethod, second: TrialOutcome = TrialOutcome.STOPPED, sign: float = 1.0
) -> list[Point]:
    """Return the points of a search of which each second trial has this outcome."""
    plan = SearchPlan(make_search(method, 40), (LR, DROPOUT))
    proposer = Proposer(plan)
    trials = list[Trial]()
    for number in range(1, 41):
        point = proposer.propose_point(trials)
        assert point is not None
        value = score(point)
        trial = Trial(number, number, point, number - 1, told=number, value=value, outcome=TrialOutcome.COMPLETE)
        if number % 2 == 0:
            trial = replace(trial, outcome=second, value=sign * value, reached=((2, sign * value),))
        trials.append(trial)
    return [trial.point for trial in trials]
