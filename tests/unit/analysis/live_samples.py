"""Samples of jobs, and what a live view has seen of them."""

from __future__ import annotations

from riseml.analysis.trends import Trends
from riseml.wire import SampleView

SAMPLE = {
    "id": "4.master",
    "project": "ai-toaster",
    "state": "RUNNING",
    "host": "local",
    "node": None,
    "time": None,
    "cpu": 37.25,
    "mem": 12.0,
    "mem_used": 2**30,
    "mem_total": 16 * 2**30,
    "gpu": None,
    "gpu_mem": None,
    "gpu_mem_used": None,
    "gpu_mem_total": None,
    "net_in": 1234.0,
    "net_out": 0.0,
    "disk_read": None,
    "disk_write": 3e9,
    "lines": 7,
    "cpus": 0.5,
    "mem_mib": 512,
    "gpus": 0,
    "image": "python:3.11",
}


def make_sample(job: str, **changes: object) -> SampleView:
    return {**SAMPLE, "id": job, **changes}  # type: ignore[typeddict-item]  # the fields of the shape


def watch(jobs: dict[str, dict[str, float]], seconds: int = 60, **common: object) -> tuple[list[SampleView], Trends]:
    """Return the last samples and what was seen; `lines` is a number of lines per second."""
    trends, samples = Trends(), []
    for now in range(0, seconds + 1, 2):
        samples = [
            make_sample(job, **(common | use | {"lines": int(use.get("lines", 0) * now)})) for job, use in jobs.items()
        ]
        trends.add_samples(samples, float(now))
    return samples, trends
