"""Measures the processes of one job at moments that the caller chooses."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field
from datetime import UTC, datetime

from riseml.base.records import dataclass
from riseml.executors.base import NotThere
from riseml.executors.gpus.nvml import GpuReader, with_gpu_use
from riseml.executors.process.process_use import ProcessMeter, ProcessUse
from riseml.executors.supervision.job_processes import list_job_processes
from riseml.executors.supervision.job_records import SupervisorRecord, runs_now
from riseml.executors.this_machine.machine import read_total_memory
from riseml.model import Sample, Traffic


@dataclass(slots=True)
class JobProcessMeter:
    """The meter of one job."""

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


def make_sample(use: ProcessUse) -> Sample:
    """Return a sample. The kernel counts no network for a process."""
    at = datetime.fromtimestamp(time.time(), UTC)
    traffic = Traffic(disk_read=use.disk_read, disk_write=use.disk_write)
    return Sample(at, use.cpu, use.memory, read_total_memory(), traffic=traffic)
