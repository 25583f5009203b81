"""What the processes of a job use, from two readings of the kernel."""

from __future__ import annotations

import os

import psutil

from riseml.executors.process.process_use import ProcessMeter


def test_a_process_reads_and_writes() -> None:
    meter, me = ProcessMeter(), psutil.Process(os.getpid())
    assert meter.read_use([me]) is None
    use = meter.read_use([me])
    assert use is not None
    assert use.memory > 0
    assert min(use.cpu, use.disk_read, use.disk_write) >= 0
