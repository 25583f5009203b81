"""What jobs have used together: sums for each host, means of equal steps."""

from __future__ import annotations

import math
from dataclasses import replace

from riseml.base.names import HostName, JobName
from riseml.base.states import JobDuty
from riseml.model import Job
from riseml.server.api.views.pool_usage import CpuUsageSum
from riseml.spec.config.types import Resources
from riseml.store.samples.sample_rows import AMOUNTS, SampleRow, Span

START = 1_700_000_040 - 1_700_000_040 % 120
JOB = Job(JobName("train"), JobDuty.DECIDES, Resources(2, 64, gpus=2))


def make_row(minute: int, **amounts: float) -> SampleRow:
    return SampleRow(START + 60 * minute, 1, tuple(amounts.get(name, math.nan) for name in AMOUNTS))


def test_jobs_of_a_host_add_up_and_a_job_without_a_host_does_not_count() -> None:
    usage = CpuUsageSum(Span(START, START + 360), 120)
    assert usage.moments == [START, START + 120, START + 240]
    one, other = (replace(JOB, host=HostName(name)) for name in ("h1", "h2"))
    usage.add_job(one, [make_row(at, cpu=100.0, mem_used=1000.0, gpu=50.0) for at in (0, 1, 2)])
    usage.add_job(one, [make_row(0, cpu=50.0), make_row(1, cpu=150.0)])
    usage.add_job(other, [make_row(5, cpu=10.0), make_row(9, cpu=99.0)])
    usage.add_job(JOB, [make_row(0, cpu=100.0)])
    first, second = usage.show({})
    assert (first["name"], second["name"], first["cpus"]) == ("h1", "h2", None)
    assert first["cpu"] == [2.0, 0.5, 0.0], "a job that ran for half of a step counts as half of itself"
    assert first["mem_used"] == [1000, 500, 0]
    assert first["gpu"] == [1.0, 0.5, 0.0], "two GPUs at 50 % are one"
    assert (first["cpus_held"], first["gpus_held"]) == ([4.0, 1.0, 0.0], [4, 2, 0])
    assert second["cpu"] == [0.0, 0.0, 0.05]
