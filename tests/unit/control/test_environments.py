"""Environments that a host already has, and environments that are deleted from outside."""

from __future__ import annotations

from riseml.control.actions import Action, StartJob
from riseml.control.observation import Observation
from riseml.model import Capacity
from riseml.names import HostName
from riseml.states import Reason, State
from tests.unit.control.simulation import Witness, job_of, make_experiment, make_plan, make_simulation

GANG = ("master", "worker.1", "worker.2", "ps.1")


def test_a_cached_environment_skips_building() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.hosts[HostName("h1")].images.add("base")
    simulation.submit(make_experiment(1, make_plan(*GANG)))
    simulation.settle()
    assert simulation.history[1] == [State.CREATED, State.STARTING, State.RUNNING]
    assert job_of(simulation, 1, "build").reason is Reason.CACHED


def test_an_environment_that_is_deleted_as_the_jobs_start_is_made_again() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    host = simulation.hosts[HostName("h1")]

    class Thief(Witness):
        def acts(self, action: Action, seen: Observation) -> None:
            if action == StartJob(host.name, simulation.stored[1].key_of(job_of(simulation, 1, "worker.1"))):
                host.images.clear()
                simulation.witness = Witness()

    simulation.witness = Thief()
    simulation.submit(make_experiment(1, make_plan(*GANG)))
    simulation.settle(15)
    assert isinstance(simulation.witness, Witness) and not isinstance(simulation.witness, Thief), "it was deleted"
    assert host.images, "and made again"
    assert simulation.state(1) is State.RUNNING
    assert len(simulation.running(1)) == len(GANG)
