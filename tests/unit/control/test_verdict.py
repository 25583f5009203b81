"""Which job ends an experiment, and what else does: a hang, a wait for an ended job, the last client of a companion."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from riseml.base.names import HostName, JobName
from riseml.base.states import CompanionKind, Reason, State
from riseml.control.verdict import find_left_end
from riseml.model import Capacity, Companion, JobKey
from riseml.spec.config.types import Retry, RetryOn
from tests.unit.control.simulation import Simulation, job_of, make_experiment, make_plan, make_simulation


@pytest.fixture
def companion() -> Simulation:
    """A TensorBoard that runs, and is left after a minute."""
    simulation = make_simulation(Capacity(8, 8192))
    tensorboard = Companion(CompanionKind.TENSORBOARD, 60.0, ("4",), ("paul/toaster/4",))
    simulation.submit(make_experiment(1, replace(make_plan("train"), companion=tensorboard)))
    simulation.settle()
    assert simulation.state(1) is State.RUNNING
    return simulation


def test_a_companion_ends_well_when_it_is_left(companion: Simulation) -> None:
    left = companion.now
    companion.last_used[1] = left
    companion.settle(5, seconds=10)
    assert companion.state(1) is State.RUNNING
    decision = companion.turn()
    assert decision.wake_at == left + timedelta(seconds=60), "no event says that time has passed"
    companion.settle(12)
    found = companion.stored[1]
    assert (found.state, found.reason, found.closed) == (State.FINISHED, Reason.LEFT, True)
    assert not companion.containers(1)


def test_a_companion_goes_on_while_it_is_used(companion: Simulation) -> None:
    for _ in range(20):
        companion.last_used[1] = companion.now
        companion.turn(seconds=30)
    assert companion.state(1) is State.RUNNING


def test_a_server_that_does_not_know_the_last_use_yet_ends_nothing(companion: Simulation) -> None:
    companion.settle(3, seconds=1000)
    assert companion.state(1) is State.RUNNING


def test_a_use_before_the_start_of_a_companion_does_not_count(companion: Simulation) -> None:
    """It waited for its place for an hour: its client gets the whole time from the start on."""
    found = companion.stored[1]
    seen = replace(companion.observe(), last_used={1: companion.now - timedelta(hours=1)})
    assert found.started_at is not None
    assert find_left_end(found, seen) == found.started_at + timedelta(seconds=60)


def test_what_trains_is_never_left(companion: Simulation) -> None:
    companion.submit(make_experiment(2, make_plan("train")))
    companion.settle()
    companion.last_used[2] = companion.now
    companion.settle(3, seconds=1000)
    assert companion.state(2) is State.RUNNING


def test_an_experiment_is_idle_when_all_its_jobs_are_quiet() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    jobs = ("master", "worker.1", "ps.1", "tensorboard")
    simulation.submit(make_experiment(1, make_plan(*jobs, idle_timeout=60)))
    simulation.settle(5)
    keys = {name: JobKey(1, JobName(name), 1) for name in jobs}
    simulation.quiet = {keys["worker.1"]: 400.0, keys["ps.1"]: 400.0}
    simulation.settle(2)
    assert simulation.state(1) is State.RUNNING, "nothing is known of the master"
    simulation.quiet[keys["master"]] = 59.0
    simulation.settle(2)
    assert simulation.state(1) is State.RUNNING
    simulation.quiet[keys["master"]] = 60.0
    simulation.hosts[HostName("h1")].faults.silent = True
    simulation.settle(2)
    assert simulation.state(1) is State.RUNNING, "a silent host says nothing about its jobs"
    simulation.hosts[HostName("h1")].faults.silent = False
    simulation.settle(8, seconds=10)
    verdict = simulation.stored[1].verdict
    assert verdict is not None
    assert (verdict.reason, verdict.job) == (Reason.IDLE, None)
    assert verdict.message == "it reached idle_timeout of 60 s; worker.1 was quiet first"
    assert not simulation.running()


def test_an_idle_experiment_is_retried_where_retry_says_so() -> None:
    for on, attempts in ((frozenset({RetryOn.IDLE}), 2), (Retry().on, 1)):
        simulation = make_simulation(Capacity(8, 8192))
        simulation.submit(make_experiment(1, make_plan("train", idle_timeout=60, retry=Retry(max=1, on=on))))
        simulation.settle(5)
        simulation.quiet = {JobKey(1, JobName("train"), attempt): 60.0 for attempt in (1, 2)}
        simulation.settle(20)
        assert simulation.stored[1].reason is Reason.IDLE
        assert job_of(simulation, 1, "train").attempt == attempts


def test_a_wait_for_a_job_that_has_ended_ends_the_experiment() -> None:
    simulation = make_simulation(Capacity(8, 8192))
    simulation.submit(make_experiment(1, make_plan("master", "worker.1")))
    simulation.settle(5)
    simulation.stuck = {JobKey(1, JobName("master"), 1): JobName("worker.1")}
    simulation.settle(40)
    assert simulation.state(1) is State.RUNNING, "the other job still runs, and may answer"
    simulation.exit(1, "worker.1", 0)
    simulation.settle(5)
    assert simulation.state(1) is State.RUNNING, "the lines of a job that has begun may be late"
    simulation.stuck = {}
    simulation.settle(40)
    assert simulation.state(1) is State.RUNNING, "it has begun"
    simulation.stuck = {JobKey(1, JobName("master"), 1): JobName("worker.1")}
    simulation.settle(40)
    verdict = simulation.stored[1].verdict
    assert verdict is not None
    assert (verdict.reason, verdict.job) == (Reason.AWAITED_ENDED, "master")
    assert verdict.message == "master waits for worker.1, which has ended with exit code 0"
    assert simulation.state(1) is State.FAILED
    assert not simulation.running()
