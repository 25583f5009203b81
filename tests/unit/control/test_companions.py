"""A companion ends some time after its last client has left it, and only then."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from riseml.base.states import CompanionKind, Reason, State
from riseml.control.verdict import find_left_end
from riseml.model import Capacity, Companion
from tests.unit.control.simulation import Simulation, make_experiment, make_plan, make_simulation


@pytest.fixture
def simulation() -> Simulation:
    """A TensorBoard that runs, and is left after a minute."""
    found = make_simulation(Capacity(8, 8192))
    companion = Companion(CompanionKind.TENSORBOARD, 60.0, ("4",), ("paul/toaster/4",))
    found.submit(make_experiment(1, replace(make_plan("train"), companion=companion)))
    found.settle()
    assert found.state(1) is State.RUNNING
    return found


def test_it_ends_well_when_it_is_left(simulation: Simulation) -> None:
    left = simulation.now
    simulation.last_used[1] = left
    simulation.settle(5, seconds=10)
    assert simulation.state(1) is State.RUNNING
    decision = simulation.turn()
    assert decision.wake_at == left + timedelta(seconds=60), "no event says that time has passed"
    simulation.settle(12)
    found = simulation.stored[1]
    assert (found.state, found.reason, found.closed) == (State.FINISHED, Reason.LEFT, True)
    assert not simulation.containers(1)


def test_it_goes_on_while_it_is_used(simulation: Simulation) -> None:
    for _ in range(20):
        simulation.last_used[1] = simulation.now
        simulation.turn(seconds=30)
    assert simulation.state(1) is State.RUNNING


def test_a_server_that_does_not_know_yet_ends_nothing(simulation: Simulation) -> None:
    simulation.settle(3, seconds=1000)
    assert simulation.state(1) is State.RUNNING


def test_a_use_before_its_start_does_not_count(simulation: Simulation) -> None:
    """It waited for its place for an hour: its client gets the whole time from the start on."""
    found = simulation.stored[1]
    seen = replace(simulation.observe(), last_used={1: simulation.now - timedelta(hours=1)})
    assert found.started_at is not None
    assert find_left_end(found, seen) == found.started_at + timedelta(seconds=60)


def test_what_trains_is_never_left(simulation: Simulation) -> None:
    simulation.submit(make_experiment(2, make_plan("train")))
    simulation.settle()
    simulation.last_used[2] = simulation.now
    simulation.settle(3, seconds=1000)
    assert simulation.state(2) is State.RUNNING
