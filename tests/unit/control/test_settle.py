"""The record of each job follows what a pass saw of its host."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from riseml.base.names import HostName
from riseml.base.states import JobDuty, Reason, State
from riseml.control.actions import CopyImage
from riseml.control.decide import decide
from riseml.control.observation import Observation
from riseml.control.settle import note_shells
from riseml.model import ActionFailure, Capacity, ContainerObservation, HostObservation
from riseml.planning.plan import make_next_attempt
from riseml.spec.config.types import Resources, Shell
from tests.unit.control.pools import H1, H2, site
from tests.unit.control.simulation import (
    LOST_AFTER,
    START,
    Simulation,
    job_of,
    make_experiment,
    make_plan,
    make_pool,
    make_simulation,
)

HOST = HostName("h1")


@pytest.mark.parametrize("state", [State.RUNNING, State.FINISHED])
def test_a_job_has_the_shell_that_it_reports_also_after_its_end(state: State) -> None:
    plan = make_plan("train")
    plan = replace(plan, jobs=tuple(replace(job, shell=Shell.AUTO) for job in plan.jobs))
    experiment = make_experiment(4, plan)
    build, job = experiment.jobs
    assert job.shell is None, "only the job can find out"
    job = replace(job, host=HOST, state=state)
    experiment = replace(experiment, jobs=(build, job))
    key = experiment.key_of(job)
    for shell in (None, Shell.SH, None):
        container = ContainerObservation(key, "c", started=True, shell=shell)
        seen = Observation(START, {HOST: HostObservation(Capacity(1, 1024), containers={key: container})})
        noted = note_shells(experiment, seen)
        assert noted.jobs[1].shell is (shell or experiment.jobs[1].shell)
        experiment = noted
    assert make_next_attempt(experiment.jobs)[1].shell is Shell.SH


@pytest.mark.parametrize("shell", [Shell.BASH, Shell.SH])
def test_a_shell_that_was_chosen_is_in_the_record_from_the_beginning(shell: Shell) -> None:
    plan = make_plan("train")
    plan = replace(plan, jobs=tuple(replace(job, shell=shell) for job in plan.jobs))
    assert [job.shell for job in make_experiment(4, plan).jobs] == [None, shell]


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
