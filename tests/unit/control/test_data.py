"""Data that an experiment names: it is there before the experiment takes a place."""

from __future__ import annotations

from dataclasses import replace

from riseml.control.actions import Action, CancelData, FetchData, StartJob
from riseml.control.observation import Observation
from riseml.model import Capacity, Plan
from riseml.names import HostName
from riseml.spec.config.types import DataSource
from riseml.states import Reason, State
from tests.unit.control.simulation import Witness, job_of, make_experiment, make_plan, make_simulation


def make_data_plan() -> Plan:
    return replace(make_plan("master", "worker.1"), data=(DataSource("s3://datasets/mnist", "mnist"),))


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
