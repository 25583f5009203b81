"""The GPUs of all hosts, as scrapes and clients get them."""

from __future__ import annotations

from datetime import UTC, datetime

from riseml.base.names import HostName
from riseml.executors.capabilities import GpuReading
from riseml.executors.pool import HostPool
from riseml.model import Capacity, Gpu
from riseml.server.api.views.prometheus_families import _list_gpus
from riseml.server.usage.gpu_readings import GpuScrapes
from tests.support.memory_executor import MemoryExecutor
from tests.support.waiting import DEADLINE


def test_gpus_are_read_once_a_minute_and_only_of_hosts_that_have_some() -> None:
    asked: list[str] = []

    class Counting(MemoryExecutor):
        def read_gpus(self) -> tuple[GpuReading, ...]:
            asked.append(self.name)
            return super().read_gpus()

    gpu = Gpu("0", "GPU-1", "NVIDIA A100", 40_960)
    hosts = [Counting(HostName("gpu1"), Capacity(4, 4096, ("0",))), Counting(HostName("cpu1"), Capacity(4, 4096))]
    hosts[0].gpus = (GpuReading(gpu, 50.0, 2**30, 61.0, 250.0),)
    pool = HostPool(tuple(hosts), DEADLINE, lambda *_: None)
    pool.observe_hosts(frozenset(), datetime(2026, 8, 31, tzinfo=UTC))
    seconds = [0.0]
    scrapes = GpuScrapes(pool, lambda: seconds[0])
    families = {family.name: family for family in _list_gpus(scrapes.read())}
    scrapes.read()
    assert asked == ["gpu1"]
    seconds[0] = 61.0
    scrapes.read()
    assert asked == ["gpu1", "gpu1"]
    (sample,) = families["riseml_gpu_temperature_celsius"].samples
    assert (sample.labels, sample.value) == ({"host": "gpu1", "gpu": "0", "name": "NVIDIA A100"}, 61.0)
    assert families["riseml_gpu_power_watts"].samples[0].value == 250.0
    assert families["riseml_gpu_power_limit_watts"].samples == [], "the driver does not tell it"
