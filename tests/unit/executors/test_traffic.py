"""What a job moves: bytes per second, from two readings of the engine or of the kernel."""

from __future__ import annotations

import os
from typing import Any

import psutil
import pytest

from riseml.executors.docker.stats import parse_samples
from riseml.executors.process.process_use import ProcessMeter
from riseml.model import Traffic


def make_row(second: int, **more: Any) -> dict[str, Any]:
    row = {
        "read": f"2026-08-31T07:23:4{second}Z",
        "cpu_stats": {"cpu_usage": {"total_usage": second * 10**8}},
        "memory_stats": {"usage": 2**20, "limit": 2**21},
    }
    return row | more


def make_busy_row(second: int, operations: tuple[str, str]) -> dict[str, Any]:
    nets = {f"eth{at}": {"rx_bytes": 500 * second, "tx_bytes": 100 * second} for at in range(2)}
    disks = [{"op": name, "value": size * second} for name, size in zip(operations, (7, 9), strict=True)]
    return make_row(second, networks=nets, blkio_stats={"io_service_bytes_recursive": disks * 2})


@pytest.mark.parametrize("operations", [("Read", "Write"), ("read", "write")])
def test_a_container_moves_the_sum_of_its_networks_and_disks(operations: tuple[str, str]) -> None:
    (sample,) = parse_samples([make_busy_row(0, operations), make_busy_row(2, operations)])
    assert sample.traffic == Traffic(1000.0, 200.0, 14.0, 18.0)


@pytest.mark.parametrize("silent", [{}, {"networks": None, "blkio_stats": {"io_service_bytes_recursive": None}}])
def test_what_the_engine_does_not_count_is_unknown(silent: dict[str, Any]) -> None:
    (sample,) = parse_samples([make_row(0, **silent), make_row(1, **silent)])
    assert sample.traffic == Traffic()


def test_a_process_reads_and_writes() -> None:
    meter, me = ProcessMeter(), psutil.Process(os.getpid())
    assert meter.read_use([me]) is None
    use = meter.read_use([me])
    assert use is not None
    assert use.memory > 0
    assert min(use.cpu, use.disk_read, use.disk_write) >= 0
