"""What the hosts have is made to match the records, step by step, whichever of them are silent or lost."""

from __future__ import annotations

from riseml.base.states import JobDuty, State
from riseml.control.actions import CopyImage, PrepareHost, StartJob
from riseml.spec.config.types import Resources, Retry
from tests.unit.control.pools import GANG, H1, H2, site
from tests.unit.control.simulation import Simulation, make_experiment, make_plan, make_pool


def test_nothing_starts_before_every_host_has_the_environment_and_the_network(spread: Simulation) -> None:
    spread.turn()
    decision = spread.turn()
    experiment = spread.stored[1]
    assert (experiment.state, experiment.network_host) == (State.STARTING, "h1")
    assert decision.actions == (PrepareHost(H1, 1, experiment.subnet), CopyImage(H2, 1, "base@1", H1))
    decision = spread.turn()
    assert decision.actions == (PrepareHost(H2, 1, experiment.subnet),)
    decision = spread.turn()
    assert [type(action) for action in decision.actions] == [StartJob] * 4
    spread.turn()
    assert spread.state(1) is State.RUNNING


def test_another_attempt_waits_until_what_has_ended_is_removed_from_its_host(spread: Simulation) -> None:
    """An engine takes a network across hosts down with the last container that ends on a host."""
    spread.settle(6)
    spread.hosts[H2].drains = False  # the logs there are not read yet: the containers stay
    spread.exit(1, "master", 1)
    spread.settle(4)
    left = list(spread.hosts[H2].containers)
    assert left, "the first attempt"
    assert {key.attempt for key in left} == {1}
    for key in left:
        spread.hosts[H2].drain(key)
    spread.settle(4)
    assert {key.attempt for key in spread.running(1)} == {2}
    assert len(spread.running(1)) == len(GANG)


def test_a_lost_host_is_left_and_cleaned_before_anything_new_starts_there() -> None:
    simulation = make_pool(h1=site(4), h2=site(4))
    plan = make_plan(*GANG, resources=GANG, retry=Retry(max=1))
    simulation.submit(make_experiment(1, plan))
    simulation.settle(6)
    assert {job.host for job in simulation.stored[1].jobs if job.part is not JobDuty.PREPARES} == {"h1"}
    simulation.hosts[H1].faults.silent = True
    simulation.settle(12, seconds=60)
    assert {key.attempt for key in simulation.running(1)} == {1, 2}
    assert all(key.attempt == 2 for key in simulation.hosts[H2].containers)
    assert simulation.state(1) is State.RUNNING
    simulation.submit(make_experiment(2, make_plan("train", resources={"train": Resources(4, 64)})))
    simulation.hosts[H1].faults.silent = False
    simulation.turn()
    assert simulation.stored[2].placed_at is None, "h1 is cleaned first"
    simulation.settle(6)
    assert {key.experiment for key in simulation.hosts[H1].containers} == {2}


def test_a_killed_experiment_on_a_host_that_never_returns_ends(spread: Simulation) -> None:
    spread.settle(6)
    spread.absent.add(H2)
    spread.kill(1)
    spread.settle(6, seconds=100)
    assert spread.state(1) is State.KILLED
    assert spread.stored[1].closed


def test_a_drained_host_gets_nothing_new_and_keeps_what_runs() -> None:
    simulation = make_pool(h1=site(8))
    simulation.submit(make_experiment(1, make_plan(*GANG)))
    simulation.settle(5)
    simulation.hosts[H1].site = site(8, taking=False)
    simulation.submit(make_experiment(2, make_plan("train")))
    simulation.settle(10, seconds=100)
    assert simulation.state(1) is State.RUNNING
    assert simulation.state(2) is State.PENDING
    simulation.hosts[H1].site = site(8)
    simulation.settle(3)
    assert simulation.state(2) is State.RUNNING
