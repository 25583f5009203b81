"""Data that an experiment names, and its copies on hosts: it is there before the experiment takes a place."""

from __future__ import annotations

from riseml.base.names import HostName
from riseml.base.states import Reason, State
from riseml.control.actions import Action, CancelData, CopyData, FetchData, StartJob
from riseml.control.explain import BlockerKind, explain_experiment
from riseml.control.observation import Observation
from riseml.model import Capacity, Plan
from riseml.spec.config.types import DataSource
from tests.unit.control.simulation import (
    Simulation,
    Witness,
    change_policy,
    job_of,
    make_experiment,
    make_plan,
    make_simulation,
)


def make_data_plan() -> Plan:
    return change_policy(make_plan("master", "worker.1"), data=(DataSource("s3://datasets/mnist", "mnist"),))


class DataWitness(Witness):
    """Sees that no job starts before the data is there."""

    def acts(self, action: Action, seen: Observation) -> None:
        assert not isinstance(action, StartJob) or action.key.experiment in seen.fetched


def test_a_place_comes_after_the_data() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.witness = DataWitness()
    simulation.hosts[HostName("h1")].images.add("base")
    simulation.submit(make_experiment(1, make_data_plan()))
    simulation.slow = 1
    simulation.turn()
    assert [action for action, _ in simulation.busy] == [FetchData(HostName("h1"), 1)]
    simulation.settle(3)
    waiting = simulation.stored[1]
    assert (waiting.state, waiting.reason, waiting.placed_at) == (State.BUILDING, Reason.WAITING_FOR_DATA, None)
    simulation.finish()
    simulation.settle()
    assert simulation.history[1] == [State.CREATED, State.BUILDING, State.STARTING, State.RUNNING]


def test_one_experiment_fetches_the_data_of_a_set() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.hosts[HostName("h1")].images.add("base")
    for number in (1, 2, 3):
        simulation.submit(make_experiment(number, make_data_plan()))
    other = change_policy(make_data_plan(), data=(DataSource("s3://datasets/bread", "bread"),))
    simulation.submit(make_experiment(4, other))
    simulation.slow = 2
    simulation.settle(3)
    fetches = [FetchData(HostName("h1"), number) for number in (1, 4)]
    assert [action for action, _ in simulation.busy] == fetches, "the others would hold threads and only wait"
    simulation.finish()
    simulation.settle()
    assert [simulation.state(number) for number in (1, 2, 3, 4)] == [State.RUNNING] * 4


def test_another_experiment_goes_on_with_the_data_when_the_first_one_is_killed() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.hosts[HostName("h1")].images.add("base")
    for number in (1, 2):
        simulation.submit(make_experiment(number, make_data_plan()))
    simulation.slow = 1
    simulation.settle(3)
    simulation.kill(1)
    turns = [simulation.turn().actions for _ in range(3)]
    assert FetchData(HostName("h1"), 2) in [action for actions in turns for action in actions]


def test_data_that_cannot_be_fetched_fails_the_experiment() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.stores_answer = False
    simulation.submit(make_experiment(1, make_data_plan()))
    simulation.settle()
    build = job_of(simulation, 1, "build")
    assert (build.state, build.reason, build.message) == (State.FAILED, Reason.DATA_FAILED, "there is no bucket")
    assert simulation.state(1) is State.FAILED
    assert simulation.stored[1].closed


def test_a_killed_experiment_ends_its_fetch() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.hosts[HostName("h1")].images.add("base")
    simulation.submit(make_experiment(1, make_data_plan()))
    simulation.slow = 1
    simulation.settle(2)
    simulation.kill(1)
    assert CancelData(HostName("h1"), 1) in (*simulation.turn().actions, *simulation.turn().actions)
    simulation.finish()
    simulation.settle()
    assert (simulation.state(1), simulation.stored[1].closed) == (State.KILLED, True)


H1, H2 = HostName("h1"), HostName("h2")


def make_pool(*copies: HostName) -> Simulation:
    """Two hosts that do not see the server's cache, but for copies; either holds one gang."""
    simulation = make_simulation(Capacity(0.3, 8192), Capacity(0.3, 8192))
    for host in simulation.hosts.values():
        host.images.add("base")
    simulation.copied[1] = set(copies)
    return simulation


def begin_copy(simulation: Simulation) -> None:
    """Submit the experiment with data, and go on until its first copy is under way."""
    simulation.submit(make_experiment(1, make_data_plan()))
    while simulation.stored[1].reason is not Reason.WAITING_FOR_DATA:
        simulation.turn()
    simulation.finish()
    while not any(isinstance(action, CopyData) for action, _ in simulation.busy):
        simulation.finish()
        simulation.slow = 1
        simulation.turn()


def test_a_host_that_does_not_see_the_cache_gets_a_copy_before_the_experiment_gets_its_place() -> None:
    simulation = make_pool()
    begin_copy(simulation)
    assert [action for action, _ in simulation.busy] == [CopyData(H1, 1)]
    simulation.settle(3)
    waiting = simulation.stored[1]
    assert (waiting.state, waiting.reason, waiting.placed_at) == (State.PENDING, Reason.WAITING_FOR_DATA, None)
    blocker = explain_experiment(simulation.world(), simulation.observe(), waiting)["blockers"][0]
    assert (blocker["block"], "copied to h1 first" in blocker["text"]) == (BlockerKind.DATA, True)
    simulation.submit(make_experiment(2, make_plan("master", "worker.1")))
    simulation.settle()
    assert simulation.state(2) is State.RUNNING, "what waits for data holds no place"
    simulation.finish()
    simulation.settle()
    assert simulation.state(1) is State.RUNNING
    assert job_of(simulation, 1, "master").host in simulation.copied[1]


def test_the_data_comes_to_a_host_that_has_room_when_the_one_with_a_copy_has_none() -> None:
    simulation = make_pool(H1)
    simulation.submit(make_experiment(2, make_plan("master", "worker.1")))
    simulation.settle()
    assert job_of(simulation, 2, "master").host == H1
    simulation.submit(make_experiment(1, make_data_plan()))
    simulation.settle()
    assert (simulation.state(1), simulation.copied[1]) == (State.RUNNING, {H1, H2})


def test_a_host_that_was_away_for_long_after_a_copy_broke_gets_the_data() -> None:
    simulation = make_pool(H1)
    simulation.submit(make_experiment(2, make_plan("master", "worker.1")))
    simulation.settle()
    simulation.stores_answer, simulation.store_trouble = False, "the connection broke"
    simulation.fetched.add(1)
    simulation.submit(make_experiment(1, make_data_plan()))
    while CopyData(H2, 1) not in simulation.problems:
        simulation.turn()
    simulation.hosts[H2].faults.silent = True
    simulation.settle(10, 60)
    simulation.hosts[H2].faults.silent, simulation.stores_answer = False, True
    simulation.settle()
    assert (simulation.state(1), simulation.copied[1]) == (State.RUNNING, {H1, H2})


def test_a_placed_experiment_whose_host_has_lost_the_copy_gets_it_again() -> None:
    simulation = make_pool(H1)
    simulation.submit(make_experiment(1, make_data_plan()))
    while simulation.stored[1].placed_at is None:
        simulation.slow = 0
        simulation.turn()
    simulation.copied[1] = set()
    simulation.settle()
    assert (simulation.state(1), simulation.copied[1]) == (State.RUNNING, {H1})


def test_data_that_no_host_can_hold_fails_the_experiment() -> None:
    simulation = make_pool()
    simulation.fetched.add(1)
    simulation.stores_answer = False
    simulation.submit(make_experiment(1, make_data_plan()))
    simulation.settle()
    failed = job_of(simulation, 1, "master")
    assert (simulation.state(1), failed.reason, failed.message) == (
        State.FAILED,
        Reason.DATA_FAILED,
        "there is no bucket",
    )
    assert simulation.stored[1].closed


def test_a_killed_experiment_ends_its_copy() -> None:
    simulation = make_pool()
    begin_copy(simulation)
    simulation.kill(1)
    assert CancelData(H1, 1) in (*simulation.turn().actions, *simulation.turn().actions)
    simulation.finish()
    simulation.settle()
    assert (simulation.state(1), simulation.stored[1].closed) == (State.KILLED, True)
