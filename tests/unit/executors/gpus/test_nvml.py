"""The GPUs of this machine as NVML reports them, and for which jobs its answer is used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import docker
import pytest

from riseml.base.names import JobName
from riseml.executors.capabilities import GpuReading
from riseml.executors.docker.stats import ContainerMeters
from riseml.executors.gpus.nvml import GpuReader, GpuUse, _has_driver, with_gpu_use
from riseml.executors.transports.engine_client import Engine
from riseml.model import Gpu, JobKey, Sample

MIB = 2**20
USES = {"GPU-a": (30, 1024), "GPU-b": (50, 2048)}  # percent, MiB of 8192


class NoDriver(Exception):
    """NVML's error."""


class Nvml:
    """NVML of a machine with two GPUs, or without a driver."""

    NVMLError: type[Exception] = NoDriver

    def __init__(self, *, works: bool = True, divided: bool = False) -> None:
        self.works = works
        self.divided = divided  # GPU-b has two parts
        self.starts = 0

    def nvmlInit(self) -> None:
        self.starts += 1
        self._demand_driver()

    def nvmlDeviceGetCount(self) -> int:
        return len(USES)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> object:
        return list(USES)[index]

    def nvmlDeviceGetUUID(self, handle: object) -> str:
        return str(handle)

    def nvmlSystemGetDriverVersion(self) -> str:
        return "535.129.03"

    def nvmlDeviceGetName(self, handle: object) -> bytes:
        return b"Tesla V100"  # packages before 11.5 give bytes

    def nvmlDeviceGetPciInfo(self, handle: object) -> Any:
        return SimpleNamespace(busId="00000000:3B:00.0")

    def nvmlDeviceGetTemperature(self, handle: object, sensor: int) -> int:
        return 40 + sensor

    def nvmlDeviceGetPowerUsage(self, handle: object) -> int:
        return 61_500

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: object) -> int:
        raise NoDriver  # as a GPU that does not support it

    def nvmlDeviceGetMigMode(self, handle: object) -> tuple[int, int]:
        if not self.divided:
            raise NoDriver
        return (1, 1) if handle == "GPU-b" else (0, 0)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: object) -> int:
        return 3

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: object, index: int) -> object:
        if index > 1:
            raise NoDriver
        return f"MIG-{index}"

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> Any:
        self._demand_driver()
        return SimpleNamespace(gpu=USES[str(handle)][0])

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> Any:
        used = USES[str(handle)][1] if handle in USES else 512
        return SimpleNamespace(used=used * MIB, total=8192 * MIB if handle in USES else 4096 * MIB)

    def _demand_driver(self) -> None:
        if not self.works:
            raise NoDriver


def list_ids(reader: GpuReader) -> tuple[str, ...]:
    """Return the id of each GPU: its index, or the UUID of each part of a divided one."""
    return tuple(one.gpu.id for one in reader.read_all())


def test_gpus_are_read_by_index_and_by_uuid() -> None:
    nvml = Nvml()
    reader = GpuReader(nvml)
    assert list_ids(reader) == ("0", "1")
    assert reader.read_use(["1"]) == reader.read_use(["GPU-b"]) == GpuUse(50.0, 2048 * MIB, 8192 * MIB)
    assert reader.read_use(["0", "GPU-b"]) == GpuUse(40.0, 3072 * MIB, 16384 * MIB)
    assert nvml.starts == 1


def test_gpus_are_named_and_measured() -> None:
    first, second = GpuReader(Nvml()).read_all()
    gpu = Gpu("0", "GPU-a", "Tesla V100", 8192, "535.129.03", "00000000:3B:00.0")
    assert first == GpuReading(gpu, 30.0, 1024 * MIB, 40.0, 61.5, None)
    assert (second.gpu.id, second.percent) == ("1", 50.0)
    assert GpuReader(Nvml(works=False)).read_all() == ()


def test_a_divided_gpu_is_its_parts() -> None:
    reader = GpuReader(Nvml(divided=True))
    assert list_ids(reader) == ("0", "MIG-0", "MIG-1")
    part = reader.read_all()[1]
    assert (part.gpu.name, part.gpu.mem, part.mem_used, part.percent) == ("Tesla V100 MIG 4gb", 4096, 512 * MIB, None)


def test_an_unknown_value_is_none() -> None:
    reader = GpuReader(Nvml())
    assert reader.read_use([]) is None
    assert reader.read_use(["0", "2"]) is None
    without = GpuReader(Nvml(works=False))
    assert list_ids(without) == ()
    assert without.read_use(["0"]) is None


def test_a_driver_that_fails_is_tried_again() -> None:
    nvml = Nvml()
    reader = GpuReader(nvml)
    assert reader.read_use(["0"]) is not None
    nvml.works = False
    assert reader.read_use(["0"]) is None
    nvml.works = True
    assert reader.read_use(["0"]) is not None


def test_a_machine_without_a_driver_has_no_gpus() -> None:
    """With the real library, which finds no driver here, or finds this machine's GPUs."""
    reader = GpuReader()
    assert (reader.read_use(list_ids(reader)) is None) == (list_ids(reader) == ())


def test_pynvml_is_imported_only_where_a_driver_is() -> None:
    """It takes 3 MiB of a server."""
    program = "import sys\nfrom riseml.executors.gpus.nvml import GpuReader\n"
    program += "GpuReader().read_all()\nprint('pynvml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"{_has_driver()}\n"


def test_a_sample_without_a_reading_keeps_its_gpu_fields_empty() -> None:
    sample = Sample(datetime(2026, 8, 31, tzinfo=UTC), 10.0, 1, 2)
    assert with_gpu_use(sample, None) is sample
    assert with_gpu_use(sample, GpuUse(50.0, 3, 4)) == Sample(sample.at, 10.0, 1, 2, 50.0, 3, 4)


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
