"""Measurements of running jobs: what they use of their host, as it counted it."""

from __future__ import annotations

from datetime import datetime

from riseml.records import dataclass


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a running job moves, in bytes per second since the sample before. None: its host does not count it."""

    net_in: float | None = None
    net_out: float | None = None
    disk_read: float | None = None
    disk_write: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement of a running job. The GPU fields are None for a job without GPUs."""

    at: datetime
    cpu: float  # percent of one core
    mem_used: int  # bytes
    mem_total: int  # bytes
    gpu: float | None = None  # percent
    gpu_mem_used: int | None = None  # bytes
    gpu_mem_total: int | None = None  # bytes
    traffic: Traffic | None = None  # None: the host does not count it
