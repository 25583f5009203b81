"""What processes of this machine use (processor, memory and disk), and the meter of one job."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import field
from datetime import UTC, datetime
from typing import NamedTuple

import psutil

from riseml.base.records import dataclass
from riseml.executors.base import NotThere
from riseml.executors.gpus.nvml import GpuReader, with_gpu_use
from riseml.executors.supervision.job_processes import list_job_processes
from riseml.executors.supervision.job_records import SupervisorRecord, runs_now
from riseml.executors.this_machine.machine import read_total_memory
from riseml.model import Sample, Traffic


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a group of processes uses."""

    cpu: float  # percent of one core since the previous reading
    memory: int  # bytes now
    disk_read: float  # bytes per second since the reading before
    disk_write: float  # bytes per second since the reading before


class _Counters(NamedTuple):
    """What a process has used so far."""

    cpu: float  # seconds
    disk_read: int  # bytes
    disk_write: int  # bytes


_NOTHING_USED = _Counters(0.0, 0, 0)


class ProcessMeter:
    """Measures what a changing group of processes uses between two readings."""

    def __init__(self) -> None:
        self._read_at = 0.0  # monotonic seconds; 0: no reading yet
        self._counters: dict[psutil.Process, _Counters] = {}  # at the last reading

    def read_use(self, group: Iterable[psutil.Process]) -> ProcessUse | None:
        """Return what the processes use; None the first time."""
        now = time.monotonic()
        before = self._counters
        elapsed = now - self._read_at
        self._counters = {}
        memory = 0
        for process in group:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                moved = process.io_counters()
                self._counters[process] = _Counters(times.user + times.system, moved.read_bytes, moved.write_bytes)
                memory += read_process_memory(process)
        is_first, self._read_at = not self._read_at, now
        if is_first or elapsed <= 0:
            return None
        pairs = [(before.get(process, _NOTHING_USED), after) for process, after in self._counters.items()]
        cpu, read, written = (max(0.0, sum(new[at] - old[at] for old, new in pairs) / elapsed) for at in range(3))
        return ProcessUse(cpu * 100, memory, read, written)


@dataclass(slots=True)
class JobProcessMeter:
    """The meter of one job: it measures the processes of the job when the caller asks."""

    load_record: Callable[[], SupervisorRecord | None]  # the record of the job as it is now
    gpu_reader: GpuReader
    _meter: ProcessMeter = field(default_factory=ProcessMeter)

    def read_use(self) -> Sample | None:
        record = self.load_record()
        if record is None or record.has_ended or not runs_now(record):
            raise NotThere("the job does not run")
        reading = self._meter.read_use(list_job_processes(record))
        if reading is None:
            return None
        return with_gpu_use(make_sample(reading), self.gpu_reader.read_use(record.gpus))


def read_processor_time(group: Iterable[psutil.Process]) -> float:
    """Return the seconds of processor time of processes, and of those of their children that have ended."""
    used = 0.0
    for process in group:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            used += times.user + times.system + times.children_user + times.children_system
    return used


def read_process_memory(process: psutil.Process) -> int:
    """Return the bytes of memory of one process, with its part of shared memory; 0 when it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{process.pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(psutil.Error):  # a kernel before 4.14, or the process has ended
        return int(process.memory_info().rss)
    return 0


def make_sample(use: ProcessUse) -> Sample:
    """Return a sample. The kernel counts no network for a process."""
    at = datetime.fromtimestamp(time.time(), UTC)
    traffic = Traffic(disk_read=use.disk_read, disk_write=use.disk_write)
    return Sample(at, use.cpu, use.memory, read_total_memory(), traffic=traffic)
