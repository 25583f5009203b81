"""Samples of the jobs that a client watches."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from riseml.base.names import parse_id
from riseml.base.states import State
from riseml.executors.pool import HostPool
from riseml.model import Experiment, JobKey, Sample
from riseml.server.usage.monitor import Monitor
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.server.memory_pool import H1, make_host

SAMPLE = Sample(datetime(2026, 8, 31, tzinfo=UTC), 50.0, 1, 2)


def make_running() -> Experiment:
    """Return an experiment with a job that runs, and one that has not begun."""
    experiment = make_experiment(1, make_plan("master", "ps.1"))
    states = {"master": State.RUNNING, "ps.1": State.PENDING}
    return replace(experiment, jobs=tuple(replace(job, host=H1, state=states[job.name]) for job in experiment.gang))


def test_jobs_that_run_are_sampled_and_each_sample_is_noted() -> None:
    host, experiment = make_host(), make_running()
    key = experiment.key_of(experiment.gang[0])
    host.samples[key] = [SAMPLE]
    noted: list[tuple[JobKey, Sample]] = []
    monitor = Monitor(HostPool((host,), 2.0, lambda *_: None), lambda key, sample: noted.append((key, sample)))
    rows = monitor.sample_jobs([experiment], None)
    assert [(job.name, sample) for _, job, sample in rows] == [("master", SAMPLE), ("ps.1", None)]
    assert noted == [(key, SAMPLE)]
    assert [job.name for _, job, _ in monitor.sample_jobs([experiment], parse_id("1.ps"))] == ["ps.1"]


def test_a_host_that_cannot_tell_holds_no_client_up() -> None:
    host, experiment = make_host(), make_running()
    host.faults.silent = True
    monitor = Monitor(HostPool((host,), 2.0, lambda *_: None), lambda *_: None)
    assert [sample for _, _, sample in monitor.sample_jobs([experiment], None)] == [None, None]
