"""Samples of one job, and the store that has them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from riseml.base.names import JobName
from riseml.model import JobKey, Sample, Traffic
from riseml.store.samples.sample_rows import ALWAYS, SIZE, Span
from riseml.store.samples.sample_store import SampleStore

JOB = JobName("worker.1")
KEY = JobKey(4, JOB, 1)
START = 1_788_000_000  # a full hour
HEADER = 16  # bytes
MOST = HEADER + (3600 + 8640) * SIZE  # bytes without minutes


def sample(at: float, cpu: float = 50.0) -> Sample:
    """Return a sample of one moment."""
    return Sample(datetime.fromtimestamp(at, UTC), cpu, 2**30, 2**34, traffic=Traffic(disk_read=7.0))


def fill(store: SampleStore, start: int, stop: int, step: int = 1) -> None:
    """Add a sample for each step; its CPU is the number of the second in its minute."""
    for at in range(start, stop, step):
        store.add_sample(KEY, sample(at, at % 60))


def path(tmp_path: Path) -> Path:
    return tmp_path / "samples/4/worker.1.samples"


def times(store: SampleStore, span: Span = ALWAYS) -> list[int]:
    return [row.at for row in store.read_rows(4, JOB, span)]
