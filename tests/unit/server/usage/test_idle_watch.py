"""For how long jobs have shown no sign of life: output, processor time, and a host that cannot tell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from riseml.base.names import HostName, JobName
from riseml.base.states import JobDuty, State
from riseml.executors.pool import HostPool
from riseml.model import Capacity, ContainerObservation, Experiment, JobKey, World
from riseml.server.usage.idle_watch import IdleWatch
from tests.support.memory_executor import MemoryExecutor
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.control.simulation import change_policy, make_experiment, make_plan

HOST = HostName("h1")
KEY = JobKey(1, JobName("train"), 1)
QUIET = 0.05  # seconds that the tests wait for


def make_running(limit: float | None) -> World:
    """Return an experiment whose job runs on the host."""
    made = make_experiment(1, change_policy(make_plan("train"), idle_timeout=limit))
    jobs = tuple(
        job if job.part is JobDuty.PREPARES else replace(job, state=State.RUNNING, host=HOST) for job in made.jobs
    )
    running: Experiment = replace(made, jobs=jobs)
    return World((running,))


class Scene:
    """A watch, a host and the lines of its job."""

    def __init__(self) -> None:
        self.host = MemoryExecutor(HOST, Capacity(1, 64))
        self.host.containers[KEY] = ContainerObservation(KEY, "c1", started=True)
        self.lines = 0
        pool = HostPool((self.host,), 1.0, lambda *_: None)
        self.watch = IdleWatch(pool, lambda: {KEY: self.lines})
        self.world = make_running(0.1)

    def quiet(self) -> float:
        """Return for how long the job has been quiet."""
        return self.watch.find_quiet(self.world)[KEY]

    def wait_until_quiet(self) -> None:
        wait_for("the job is quiet", lambda: self.quiet() > QUIET, DEADLINE)

    def wait_until_active(self) -> None:
        """Wait until the watch has noticed what the job did at this moment."""
        since = time.monotonic()
        wait_for("the job is active", lambda: self.quiet() <= time.monotonic() - since, DEADLINE)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr("riseml.server.usage.idle_watch._SHORTEST", 0.001)
    made = Scene()
    yield made
    made.watch.find_quiet(World(()))


def test_a_job_that_does_nothing_is_quiet_until_it_prints(scene: Scene) -> None:
    scene.wait_until_quiet()
    for _ in range(3):
        scene.lines += 1
        scene.wait_until_active()
        scene.wait_until_quiet()


def test_a_job_that_computes_is_active(scene: Scene) -> None:
    scene.wait_until_quiet()
    scene.host.processor_times[KEY] = 1e6
    scene.wait_until_active()
    scene.wait_until_quiet()
    scene.host.processor_times[KEY] = 0.0  # one of its processes has ended
    scene.wait_until_active()


def test_a_job_whose_host_cannot_tell_counts_as_active(scene: Scene) -> None:
    scene.wait_until_quiet()
    scene.host.faults.silent = True
    scene.wait_until_active()
    scene.host.faults.silent = False
    scene.wait_until_quiet()


def test_only_jobs_with_a_limit_are_watched(scene: Scene) -> None:
    assert scene.watch.find_quiet(make_running(None)) == {}
    assert scene.watch.find_quiet(World(())) == {}
