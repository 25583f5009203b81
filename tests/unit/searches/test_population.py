"""Population based training: parents and parameters are a function of the records and the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.states import Wanted
from riseml.model import Point, SearchPlan, SearchRecord, Trial, TrialOutcome
from riseml.planning.generations import awaits_generation, find_generation, make_lineage
from riseml.planning.repetition import find_next_run
from riseml.searches.population import breed_point, choose_parent
from riseml.searches.propose import Proposer, find_parent
from riseml.searches.space import name_point
from riseml.spec.config.conditions import is_there, meets_constraints
from riseml.spec.config.types import Distribution, Goal, Parameter, PopulationRule, Scale, SearchMethod
from tests.support.searches import EPOCHS, LAYERS, LR, UNITS, make_search
from tests.unit.searches.test_propose import DEPENDENT

SIZE = 4
RULE = PopulationRule(SIZE, replace=0.25, resample=0.0)
SPACE = (LR, UNITS, LAYERS, EPOCHS)


def make_plan(
    rule: PopulationRule = RULE, parameters: tuple[Parameter, ...] = SPACE, trials: int = 24, **options: object
) -> SearchPlan:
    return SearchPlan(make_search(SearchMethod.PBT, trials, pbt=rule, **options), parameters)


def run(plan: SearchPlan, values: Sequence[float | None], excess: Sequence[float] = ()) -> list[Trial]:
    """Return the trials of a search that is asked for the next one while the whole generation runs."""
    trials: list[Trial] = []
    for index, value in enumerate(values):
        point = Proposer(plan).propose_point(trials)
        assert point is not None
        outcome = TrialOutcome.FAILED if value is None else TrialOutcome.COMPLETE
        over = excess[index] if index < len(excess) else 0.0
        number = index + 1
        trials.append(Trial(number, 100 + number, point, 0, outcome=outcome, told=number, value=value, excess=over))
    return trials


def list_parents(plan: SearchPlan, trials: Sequence[Trial]) -> list[int | None]:
    """Return the number of the parent of each trial of the next generation."""
    begin = len(trials)
    following = (choose_parent(plan, trials, begin + member) for member in range(1, SIZE + 1))
    return [None if parent is None else parent.number for parent in following]


@pytest.mark.parametrize(
    ("goal", "values", "parents"),
    [
        (Goal.MAXIMIZE, (1.0, 4.0, 2.0, 3.0), [2, 2, 3, 4]),
        (Goal.MINIMIZE, (1.0, 4.0, 2.0, 3.0), [1, 1, 3, 4]),
        (Goal.MAXIMIZE, (1.0, None, 2.0, None), [1, 3, 3, 3]),  # each one that failed, and nothing else
        (Goal.MAXIMIZE, (None, None, 2.0, None), [3, 3, 3, 3]),
        (Goal.MAXIMIZE, (None, None, None, None), [None] * 4),
        (Goal.MAXIMIZE, (2.0, 2.0, 2.0, 2.0), [1, 2, 3, 1]),  # of equal ones the first are better
    ],
)
def test_the_worst_trials_continue_the_best_and_the_others_themselves(
    goal: Goal, values: tuple[float | None, ...], parents: list[int | None]
) -> None:
    plan = make_plan(goal=goal)
    assert list_parents(plan, run(plan, values)) == parents


def test_a_trial_beyond_the_constraints_is_no_parent_where_another_one_is() -> None:
    plan = make_plan(constraints=("metrics.latency < 3",))
    assert list_parents(plan, run(plan, (1.0, 9.0, 2.0, 3.0), (0.0, 5.0, 0.0, 0.0))) == [1, 4, 3, 4]


def test_a_generation_that_failed_is_left_out_and_the_one_before_is_continued() -> None:
    plan = make_plan()
    trials = run(plan, (1.0, 4.0, 2.0, 3.0, None, None, None, None))
    assert list_parents(plan, trials) == [2, 2, 2, 2]


def test_who_continues_itself_keeps_its_parameters_and_who_is_replaced_gets_others() -> None:
    plan = make_plan()
    trials = run(plan, (1.0, 4.0, 2.0, 3.0))
    points = [breed_point(plan, trials, number) for number in (5, 6, 7, 8)]
    assert points[1:] == [trial.point for trial in trials[1:]]
    assert points[0] not in (None, *(trial.point for trial in trials))


_VALUES = st.lists(st.one_of(st.none(), st.floats(-10, 10)), min_size=SIZE, max_size=6 * SIZE)


@given(_VALUES, st.integers(0, 9), st.sampled_from([SPACE, DEPENDENT]), st.sampled_from([0.0, 0.25, 1.0]))
def test_the_same_records_give_the_same_parents_and_points(
    values: list[float | None], seed: int, parameters: tuple[Parameter, ...], resample: float
) -> None:
    """Whatever server is asked, and however many trials of the generation run at the same time."""
    rule = replace(RULE, resample=resample)
    plan = make_plan(rule, parameters, seed=seed, constraints=("units * layers <= 512",))
    trials = run(plan, values)
    server = Proposer(plan)
    for count in range(SIZE, len(trials)):
        begin = count // SIZE * SIZE
        before = [
            *trials[:begin],
            *(replace(trial, outcome=None, value=None, told=None) for trial in trials[begin:count]),
        ]
        assert server.propose_point(before) == trials[count].point
        parent = find_parent(plan, before)
        assert parent == choose_parent(plan, trials, count + 1)
        if parent is not None and parent.number == count + 1 - SIZE:
            assert trials[count].point == parent.point, "who continues itself keeps its parameters"
        _check_point(plan, trials[count].point)


def _check_point(plan: SearchPlan, point: Point) -> None:
    texts = dict(point)
    present = [parameter.name for parameter in plan.parameters if is_there(parameter, texts)]
    assert [name for name, _ in point] == present
    assert meets_constraints(plan.search.constraints, point)
    name_point(plan.parameters, point)  # every value has a place in its distribution


@pytest.mark.parametrize(
    ("parameter", "old", "near"),
    [
        (LR, "0.01", {"0.008", "0.012"}),
        (LR, "0.1", {"0.08", "0.1"}),  # no more than the largest
        (Parameter("n", (), Distribution(Scale.INT, 1, 100)), "50", {"40", "60"}),
        (Parameter("n", (), Distribution(Scale.INT, 1, 100)), "2", {"1", "3"}),  # 1.6 and 2.4 are 2 again
        (Parameter("n", (), Distribution(Scale.INT, 1, 100, by_magnitude=True)), "2", {"1", "3"}),
        (UNITS, "16", {"16", "32"}),
        (UNITS, "128", {"96", "160"}),
        (Parameter("z", (), Distribution(Scale.NORMAL, -6, 6, mean=0, sd=1)), "-2", {"-1.6", "-2.4"}),
        (LAYERS, "3", {"2", "4"}),
        (LAYERS, "4", {"3"}),
        (Parameter("only", ("a",)), "a", {"a"}),
    ],
)
def test_a_changed_value_is_near_that_of_the_parent(parameter: Parameter, old: str, near: set[str]) -> None:
    other = Parameter("other", tuple(map(str, range(1000))))
    plan = make_plan(parameters=(parameter, other))
    point = ((parameter.name, old), ("other", "500"))
    trials = [Trial(n, n, point, 0, outcome=TrialOutcome.COMPLETE, told=n, value=float(-n)) for n in range(1, 41)]
    bred = [breed_point(replace(plan, search=replace(plan.search, seed=seed)), trials[:4], 8) for seed in range(40)]
    values = {dict(point)[parameter.name] for point in bred if point is not None}
    assert values == near
    assert {dict(point)["other"] for point in bred if point is not None} == {"499", "501"}


def test_a_changed_value_may_be_any_one() -> None:
    plan = make_plan(replace(RULE, resample=1.0))
    trials = run(plan, (1.0, 4.0, 2.0, 3.0))
    seeds = (replace(plan, search=replace(plan.search, seed=seed)) for seed in range(30))
    rates = {float(dict(breed_point(other, trials, 5) or ())["lr"]) for other in seeds}
    assert min(rates) < 1e-4
    assert max(rates) > 1e-2


def test_the_first_generation_may_have_a_point_twice_where_there_are_not_enough() -> None:
    plan = make_plan(parameters=(LAYERS,), points=((("layers", "4"),),))
    points = [trial.point for trial in run(plan, (1.0, 2.0, 3.0, 4.0))]
    assert points[0] == (("layers", "4"),)
    assert set(points) == {(("layers", value),) for value in ("2", "3", "4")}


def test_a_generation_waits_for_the_results_of_the_one_before() -> None:
    plan = make_plan()
    trials = run(plan, (1.0, 4.0, 2.0, 3.0))
    running = replace(trials[1], outcome=None)

    def make_record(*members: Trial) -> SearchRecord:
        return SearchRecord(7, "paul", 4, plan, 2, Wanted.RUN, 24, members)

    assert awaits_generation(make_record(trials[0], running, *trials[2:]))
    assert find_next_run(make_record(trials[0], running, *trials[2:])) is None
    assert find_next_run(make_record(trials[0], running)) is not None, "members of one generation run beside each other"
    assert find_next_run(make_record(*trials)) is not None
    assert [find_generation(plan, number) for number in (1, 4, 5, 24)] == [1, 1, 2, 6]
    lineage = make_lineage(plan, 5, trials[1])
    assert lineage is not None
    assert (lineage.generation, lineage.parent, lineage.parent_record) == (2, 2, 102)
    assert make_lineage(SearchPlan(make_search(), SPACE), 5) is None
