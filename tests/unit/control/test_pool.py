"""Gangs over several hosts from their start to their end: environments, networks, drained, silent and lost hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.states import JobDuty, Reason, State
from riseml.control.actions import CopyImage, PrepareHost, ReleaseHost, StartJob
from riseml.control.decide import decide
from riseml.model import ActionFailure
from riseml.spec.config.types import Resources, Retry
from tests.unit.control.pools import GANG, H1, H2, ready, site
from tests.unit.control.simulation import Simulation, job_of, make_experiment, make_plan, make_pool


@pytest.fixture
def spread() -> Simulation:
    """A gang over two hosts of a swarm, about to start."""
    simulation = make_pool(h1=site(3), h2=site(3, manager=False))
    plan = make_plan(*GANG, resources=GANG, retry=Retry(max=1))
    simulation.submit(make_experiment(1, plan))
    return simulation


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


def test_a_gang_that_waits_for_its_environment_has_that_reason(spread: Simulation) -> None:
    spread.turn()
    spread.turn()
    spread.hosts[H2].images.clear()
    spread.slow = 9
    spread.settle(3)
    assert spread.stored[1].reason is Reason.WAITING_FOR_IMAGE
    assert {job.reason for job in spread.stored[1].jobs if job.part is not JobDuty.PREPARES} == {
        Reason.WAITING_FOR_IMAGE
    }
    spread.finish()
    spread.slow = 0
    spread.settle(4)
    assert spread.state(1) is State.RUNNING


def test_an_environment_that_no_host_has_any_more_is_built_again_and_shared() -> None:
    simulation = make_pool(h1=site(3), h2=site(3))
    simulation.submit(make_experiment(1, make_plan(*GANG, resources=GANG)))
    simulation.turn()
    simulation.turn()
    for host in simulation.hosts.values():
        host.images.clear()
    simulation.settle(6)
    assert simulation.state(1) is State.RUNNING
    assert all("base@1" in host.images for host in simulation.hosts.values())


def test_a_host_that_cannot_take_the_environment_ends_the_gang(spread: Simulation) -> None:
    spread.turn()
    spread.turn()
    spread.hosts[H2].images.clear()
    share = CopyImage(H2, 1, "base@1", H1)
    spread.slow = 9
    spread.turn()
    spread.busy.clear()
    spread.problems[share] = ActionFailure("no space left on device", permanent=True, since=spread.now)
    spread.settle(3)
    assert (spread.stored[1].state, spread.stored[1].reason) == (State.FAILED, Reason.START_FAILED)
    assert spread.stored[1].message == "no space left on device"


def test_the_network_host_is_released_last(spread: Simulation) -> None:
    spread.settle(6)
    assert spread.state(1) is State.RUNNING
    spread.kill(1)
    released: list[str] = []
    for _ in range(8):
        released += [action.host for action in spread.turn().actions if isinstance(action, ReleaseHost)]
    assert released == ["h2", "h1"]
    assert spread.stored[1].closed


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


def test_a_silent_network_host_delays_and_breaks_nothing(spread: Simulation) -> None:
    spread.turn()
    spread.hosts[H1].faults.silent = True
    spread.settle(5)
    assert not spread.running()
    spread.hosts[H1].faults.silent = False
    spread.settle(6)
    assert spread.state(1) is State.RUNNING


def test_another_manager_creates_the_network_when_the_network_host_is_lost_before_it_could() -> None:
    simulation = make_pool(
        h1=site(0.1, taking=False), h2=site(3, manager=False), h3=site(3, manager=False), h4=site(0.1, taking=False)
    )
    simulation.submit(make_experiment(1, make_plan(*GANG, resources=GANG)))
    simulation.turn()
    simulation.hosts[H1].faults.silent = True
    simulation.turn()
    assert simulation.stored[1].placed_at is not None
    simulation.settle(5)
    assert simulation.stored[1].network_host == "h4"
    simulation.settle(5)
    assert simulation.state(1) is State.RUNNING


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


def test_a_host_that_leaves_the_pool_is_lost_after_the_same_time(spread: Simulation) -> None:
    spread.settle(6)
    spread.absent.add(H2)
    spread.turn()
    left = job_of(spread, 1, "ps.1" if job_of(spread, 1, "ps.1").host == H2 else "worker.2")
    assert left.unseen_since == spread.now
    spread.settle(2, seconds=100)
    assert spread.state(1) is State.RUNNING
    spread.absent.clear()
    spread.turn()
    assert all(job.unseen_since is None for job in spread.stored[1].jobs)
    spread.absent.add(H2)
    spread.settle(6, seconds=100)
    assert job_of(spread, 1, left.name).attempt == 2
    assert spread.state(1) is State.PENDING, "the rest of the pool is too small"


def test_a_killed_experiment_on_a_host_that_never_returns_ends(spread: Simulation) -> None:
    spread.settle(6)
    spread.absent.add(H2)
    spread.kill(1)
    spread.settle(6, seconds=100)
    assert spread.state(1) is State.KILLED
    assert spread.stored[1].closed


def test_another_host_builds_when_the_builder_is_lost() -> None:
    simulation = make_pool(h1=site(4), h2=site(4))
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.slow = 1
    simulation.turn()
    assert job_of(simulation, 1, "build").host == "h1"
    simulation.hosts[H1].faults.silent = True
    simulation.settle(2)
    assert job_of(simulation, 1, "build").host == "h1"
    simulation.settle(6, seconds=100)
    simulation.finish()
    simulation.settle(5)
    assert simulation.state(1) is State.RUNNING
    assert job_of(simulation, 1, "train").host == "h2"


def test_a_build_waits_for_a_silent_host_that_may_have_the_image() -> None:
    simulation = _make_pool_without_registry()
    simulation.hosts[H1].faults.silent = True
    simulation.settle(2)
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.settle(4)
    build = job_of(simulation, 1, "build")
    assert (build.state, build.reason) == (State.PENDING, Reason.WAITING_FOR_IMAGE)
    assert build.message == "host h1 does not answer now and may have the image"
    simulation.hosts[H1].faults.silent = False
    simulation.settle(4)
    assert (job_of(simulation, 1, "build").host, simulation.state(1)) == ("h1", State.RUNNING)


def test_a_build_waits_for_a_host_that_answers_an_earlier_question_first() -> None:
    simulation = _make_pool_without_registry()
    simulation.hosts[H1].faults.silent = True
    simulation.settle(2)
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.settle(4)
    seen = simulation.observe()
    late = replace(seen.hosts[H1], silent_since=None, images={})
    (waiting,) = decide(simulation.world(), replace(seen, hosts={**seen.hosts, H1: late})).world.experiments
    assert waiting.build is not None
    assert waiting.build.state is State.PENDING
    known = replace(late, images=seen.hosts[H2].images)
    (failed,) = decide(simulation.world(), replace(seen, hosts={**seen.hosts, H1: known})).world.experiments
    assert failed.build is not None
    assert failed.build.state is State.FAILED


def test_a_build_fails_once_the_silent_host_is_lost() -> None:
    simulation = _make_pool_without_registry()
    simulation.hosts[H1].faults.silent = True
    simulation.settle(2)
    simulation.submit(make_experiment(1, make_plan("train")))
    simulation.settle(6, seconds=100)
    assert (simulation.state(1), simulation.stored[1].reason) == (State.FAILED, Reason.BUILD_FAILED)
    assert simulation.stored[1].message == "the image base@1 is not on the host and cannot be fetched"


def test_a_gang_waits_for_the_environment_of_a_silent_host() -> None:
    simulation = _make_pool_without_registry()
    large = {"master": Resources(cpus=8, mem=64)}
    simulation.submit(make_experiment(1, make_plan(*large, resources=large)))
    simulation.turn()
    simulation.hosts[H2].images.clear()
    simulation.hosts[H1].faults.silent = True
    simulation.settle(4)
    assert simulation.state(1) is State.STARTING
    simulation.hosts[H1].faults.silent = False
    simulation.settle(4)
    assert (job_of(simulation, 1, "master").host, simulation.state(1)) == ("h2", State.RUNNING)


def _make_pool_without_registry() -> Simulation:
    """A small host that has the base image, and a large one; neither can fetch an image."""
    simulation = make_pool(h1=site(4), h2=site(8))
    simulation.hosts[H1].images.add("base")
    for host in simulation.hosts.values():
        host.faults.no_registry = True
    simulation.turn()
    return simulation


def test_a_host_that_was_not_asked_for_the_image_is_asked_at_once() -> None:
    simulation = make_pool(h1=site(4))
    simulation.submit(replace(ready(1, GANG), state=State.PENDING, reason=Reason.NO_ROOM))
    decision = simulation.turn()
    assert decision.wake_at == simulation.now
    simulation.settle(4)
    assert simulation.state(1) is State.RUNNING


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
