"""What an experiment waits for beside a place: the ends of others, and an input that is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.roles import Role, Scope
from riseml.base.states import Reason, State
from riseml.control.explain import BlockerKind, explain_experiment
from riseml.control.placement.queue import make_queue
from riseml.control.predecessors import OUTSIDE, name_predecessor
from riseml.model import Caller, Capacity, Experiment, Owner, Predecessor
from tests.unit.control.simulation import Simulation, make_experiment, make_plan, make_simulation

FIRST = Predecessor(1, "paul", 1)
ANY_END = replace(FIRST, accepts_any_end=True)
NEEDS_ALL = Capacity(8, 8192)


def make_waiter(identity: int, *after: Predecessor, **fields: object) -> Experiment:
    return make_experiment(identity, replace(make_plan("train"), after=after), **fields)


@pytest.fixture
def pair() -> Simulation:
    """Two experiments: the second waits for the first, which runs."""
    simulation = make_simulation(NEEDS_ALL)
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.submit(make_waiter(2, FIRST))
    simulation.settle()
    return simulation


def describe(simulation: Simulation, identity: int) -> tuple[State, Reason, str]:
    found = simulation.stored[identity]
    return found.state, found.reason, found.message


def test_it_waits_outside_of_the_queue_with_its_environment_made_and_starts_when_the_other_has_finished(
    pair: Simulation,
) -> None:
    assert describe(pair, 2) == (State.PENDING, Reason.AFTER, "waits for 1")
    assert pair.stored[2].jobs[0].state is State.FINISHED, "its environment is ready"
    assert make_queue(pair.world().experiments) == []
    told = explain_experiment(pair.world(), pair.observe(), pair.stored[2])
    assert (told["phase"], told["summary"]) == ("waits", "it waits for 1 (RUNNING)")
    assert told["blockers"] == [{"block": BlockerKind.AFTER, "text": told["summary"], "by": ["1"]}]
    pair.restart()
    pair.exit(1, "train", 0)
    pair.settle()
    assert (pair.state(1), pair.state(2)) == (State.FINISHED, State.RUNNING)


@pytest.mark.parametrize(
    ("code", "after", "expected"),
    [
        (3, FIRST, (State.FAILED, Reason.PREDECESSOR, "it has waited for 1, which FAILED: exit code 3")),
        (3, ANY_END, (State.RUNNING, Reason.RUNNING, "")),
        (None, FIRST, (State.FAILED, Reason.PREDECESSOR, "it has waited for 1, which KILLED")),
        (None, ANY_END, (State.RUNNING, Reason.RUNNING, "")),
    ],
)
def test_a_predecessor_that_did_not_finish_ends_what_waits_for_it_unless_any_end_will_do(
    code: int | None, after: Predecessor, expected: tuple[State, Reason, str]
) -> None:
    simulation = make_simulation(NEEDS_ALL)
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.submit(make_waiter(2, after))
    simulation.settle()
    if code is None:
        simulation.kill(1)
    else:
        simulation.exit(1, "train", code)
    simulation.settle()
    assert describe(simulation, 2) == expected
    assert simulation.stored[2].closed is (expected[0] is State.FAILED)


def test_it_waits_for_all_and_one_that_fails_ends_it_while_others_go_on() -> None:
    simulation = make_simulation(NEEDS_ALL)
    for identity in (1, 2):
        simulation.submit(make_experiment(identity, make_plan("train")))
    simulation.submit(make_waiter(3, FIRST, Predecessor(2, "paul", 2)))
    simulation.settle()
    assert simulation.stored[3].message == "waits for 1, 2"
    simulation.exit(1, "train", 0)
    simulation.settle()
    assert simulation.stored[3].message == "waits for 2"
    simulation.exit(2, "train", 1)
    simulation.settle()
    assert describe(simulation, 3) == (
        State.FAILED,
        Reason.PREDECESSOR,
        "it has waited for 2, which FAILED: exit code 1",
    )


def test_what_is_read_must_be_complete_and_there() -> None:
    simulation = make_simulation(NEEDS_ALL)
    simulation.submit(make_experiment(1, make_plan("train")))
    for identity in (2, 3):
        simulation.submit(make_waiter(identity, replace(FIRST, has_input=True)))
    simulation.submit(make_waiter(4, FIRST))
    simulation.lost_inputs[3] = "model: the output folder paul/toaster/1 has no model"
    simulation.settle()
    for host in simulation.hosts.values():
        host.drains = False
    simulation.exit(1, "train", 0)
    simulation.settle()
    assert (simulation.state(1), simulation.stored[1].closed) == (State.FINISHED, False)
    assert [simulation.state(number) for number in (2, 3, 4)] == [State.PENDING, State.PENDING, State.RUNNING]
    for host in simulation.hosts.values():
        host.drains = True
        for key in host.containers:
            host.drain(key)
    simulation.settle()
    assert simulation.state(2) is State.RUNNING
    assert describe(simulation, 3) == (State.FAILED, Reason.NO_INPUT, simulation.lost_inputs[3])


def test_a_waiter_takes_no_turn_from_later_experiments_of_its_user_and_is_killed_as_any_other(pair: Simulation) -> None:
    pair.submit(make_experiment(3, make_plan("train")))
    pair.settle()
    assert pair.state(3) is State.RUNNING
    pair.kill(2)
    pair.settle()
    assert describe(pair, 2)[:2] == (State.KILLED, Reason.KILLED_BY_USER)
    assert pair.stored[2].closed


def test_an_experiment_without_news_of_what_it_waits_for_goes_on_waiting(pair: Simulation) -> None:
    seen = replace(pair.observe(), predecessors={})
    after = pair.decide(pair.world(), seen).world.experiments[1]
    assert after is pair.stored[2]


def test_who_sees_an_experiment_reads_no_name_that_is_hidden_from_them(pair: Simulation) -> None:
    waiter = pair.stored[2]
    shared = replace(waiter, team_project="vision")
    assert name_predecessor(waiter, FIRST) == "1"
    assert name_predecessor(waiter, replace(FIRST, owner="anna")) == "anna.1"
    assert name_predecessor(shared, replace(FIRST, team_project="vision")) == "paul.1"
    assert name_predecessor(shared, FIRST) == OUTSIDE
    anna = Caller(Owner("anna", 1001, 1001), Role.MEMBER, Scope.RUN, (("vision", Role.MEMBER),))
    told = explain_experiment(replace(pair.world(), reader=anna), pair.observe(), shared)
    assert (told["summary"], told["blockers"][0]["by"]) == ("it waits for another user's experiment", [])


def test_what_became_of_a_hidden_experiment_is_told_without_its_reason() -> None:
    simulation = make_simulation(NEEDS_ALL)
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.submit(replace(make_waiter(2, FIRST), team_project="vision"))
    simulation.settle()
    simulation.exit(1, "train", 3)
    simulation.settle()
    expected = f"it has waited for {OUTSIDE}, which FAILED"
    assert describe(simulation, 2) == (State.FAILED, Reason.PREDECESSOR, expected)
