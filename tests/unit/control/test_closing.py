"""When an experiment is closed: nothing of it is left on a host, as far as the server can know."""

from __future__ import annotations

import pytest

from riseml.model import Capacity
from riseml.names import HostName
from riseml.states import State
from tests.unit.control.simulation import make_experiment, make_plan, make_simulation


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
