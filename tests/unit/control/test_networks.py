"""What the jobs of a gang share on its hosts: when it is made, and when it is removed."""

from __future__ import annotations

import pytest

from riseml.base.names import HostName
from riseml.base.states import State
from riseml.control.actions import ReleaseHost
from riseml.model import Capacity
from tests.unit.control.pools import H1
from tests.unit.control.simulation import Simulation, make_experiment, make_plan, make_simulation


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


def test_the_network_host_is_released_last(spread: Simulation) -> None:
    spread.settle(6)
    assert spread.state(1) is State.RUNNING
    spread.kill(1)
    released: list[str] = []
    for _ in range(8):
        released += [action.host for action in spread.turn().actions if isinstance(action, ReleaseHost)]
    assert released == ["h2", "h1"]
    assert spread.stored[1].closed


def test_a_silent_network_host_delays_and_breaks_nothing(spread: Simulation) -> None:
    spread.turn()
    spread.hosts[H1].faults.silent = True
    spread.settle(5)
    assert not spread.running()
    spread.hosts[H1].faults.silent = False
    spread.settle(6)
    assert spread.state(1) is State.RUNNING
