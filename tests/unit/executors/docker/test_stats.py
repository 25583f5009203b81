"""What a container uses and moves, from two readings of the engine, and of the GPUs where the host is this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docker
import pytest

from riseml.base.names import JobName
from riseml.executors.docker.stats import ContainerMeters, StatsDifference, parse_samples
from riseml.executors.gpus.nvml import GpuReader
from riseml.executors.transports.engine_client import Engine
from riseml.model import JobKey, Traffic
from tests.unit.executors.gpus.fake_nvml import MIB, Nvml


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


def test_a_sample_is_the_difference_of_two_readings() -> None:
    difference = StatsDifference()
    assert difference.add_reading(make_row(0)) is None
    assert difference.add_reading({}) is None, "the container has ended"
    found = difference.add_reading(make_row(2))
    assert found is not None
    assert found.cpu == 10.0
    assert difference.add_reading(make_row(2)) is None, "the engine has measured nothing since"


class EngineWithStatistics(docker.APIClient):
    """An engine that measures one container, which has GPU 0."""

    def __init__(self) -> None:
        """Connects to nothing."""

    def inspect_container(self, *_: object) -> dict[str, Any]:
        return {"HostConfig": {"DeviceRequests": [{"DeviceIDs": ["0"]}]}}

    def stats(self, *_: object, **__: object) -> list[dict[str, Any]]:
        return [
            {
                "read": f"2026-08-31T07:23:4{second}Z",
                "cpu_stats": {"cpu_usage": {"total_usage": second * 10**8}},
                "memory_stats": {"usage": MIB, "limit": 2 * MIB},
            }
            for second in range(2)
        ]


@pytest.mark.parametrize(
    ("url", "percent"), [("unix:///run/docker.sock", 30.0), ("ssh://gpu1", None), ("tcp://gpu1:2376", None)]
)
def test_only_a_host_that_is_this_machine_uses_its_gpus(
    monkeypatch: pytest.MonkeyPatch, url: str, percent: float | None
) -> None:
    @contextmanager
    def stream(_: Engine) -> Iterator[docker.APIClient]:
        yield EngineWithStatistics()

    monkeypatch.setattr(Engine, "stream", stream)
    engine = Engine("unix:///run/docker.sock")
    engine.url, engine.is_local = url, url.startswith("unix://")
    (sample,) = ContainerMeters(engine, "5e17e4", GpuReader(Nvml())).sample(JobKey(4, JobName("train"), 1))
    assert (sample.cpu, sample.gpu) == (10.0, percent)
