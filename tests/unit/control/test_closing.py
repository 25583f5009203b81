"""An experiment is closed once nothing of it is left on any host, as far as the server can know."""

from __future__ import annotations

from datetime import timedelta

import pytest

from riseml.base.names import HostName
from riseml.base.states import Reason, State
from riseml.model import Capacity
from tests.unit.control.simulation import LOST_AFTER, Simulation, job_of, make_experiment, make_plan, make_simulation


@pytest.mark.parametrize("answers", [True, False])
def test_a_new_server_does_not_close_before_a_host_has_answered_it(*, answers: bool) -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("master", "worker.1", "ps.1")))
    simulation.settle()
    host = simulation.hosts[HostName("h1")]
    simulation.exit(1, "master", 0)

    def die(_: str) -> None:
        if simulation.state(1) is State.FINISHED:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        while True:
            simulation.turn(die)
    assert simulation.containers(1), "the server died between the verdict and the removal"
    host.faults.silent = True
    simulation.restart()
    simulation.settle(10, seconds=20)
    assert not simulation.stored[1].closed
    if answers:
        host.faults.silent = False
        simulation.settle(12)
        assert not simulation.containers(1)
    else:
        simulation.settle(10, seconds=20)
    assert simulation.stored[1].closed, "a host that stays silent counts as lost"


def start_server_that_gets_no_answer() -> Simulation:
    """Return a server that has started while a job runs on a host that does not answer it."""
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.settle()
    simulation.hosts[HostName("h1")].faults.silent = True
    simulation.restart()
    simulation.settle(2)
    return simulation


def test_a_host_that_never_answered_is_not_lost_because_the_server_or_its_machine_slept() -> None:
    simulation = start_server_that_gets_no_answer()
    asleep = timedelta(hours=1)
    simulation.now += asleep
    simulation.silent_since[HostName("h1")] += asleep  # `HostPool` leaves out the time in which the machine slept
    simulation.settle(2)
    assert simulation.state(1) is State.RUNNING
    simulation.restart()
    simulation.now += asleep  # no server runs
    simulation.settle(2)
    assert simulation.state(1) is State.RUNNING
    simulation.hosts[HostName("h1")].faults.silent = False
    simulation.settle()
    assert simulation.state(1) is State.RUNNING


def test_a_host_that_never_answers_is_lost_and_not_gone_from_the_pool() -> None:
    simulation = start_server_that_gets_no_answer()
    simulation.settle(2, LOST_AFTER)
    lost = job_of(simulation, 1, "train")
    assert (lost.reason, lost.message) == (Reason.HOST_LOST, "host h1 has not answered since the server started")
