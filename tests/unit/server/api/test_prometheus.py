"""GET /metrics: what Prometheus' own parser reads, names after its conventions, no import before the first scrape."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import httpx
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from riseml.base.names import HostName
from riseml.base.settings import Settings
from riseml.executors.capabilities import GpuReading
from riseml.executors.pool import HostPool
from riseml.model import Capacity, Gpu
from riseml.server.api.views.prometheus_families import _list_gpus, make_exposition
from riseml.server.app import make_application
from riseml.server.timings import BOUNDS, DurationCounts
from riseml.server.usage.gpu_readings import GpuScrapes
from tests.support.memory_executor import MemoryExecutor
from tests.support.waiting import DEADLINE

UNITS = ("_seconds", "_bytes", "_ratio", "_cores")


def scrape(client: httpx.Client) -> dict[str, Metric]:
    """Return the families by name."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def test_the_state_of_the_server_is_exported(client: httpx.Client) -> None:
    found = scrape(client)
    states = {sample.labels["state"]: sample.value for sample in found["riseml_experiments"].samples}
    assert (states["FINISHED"], states["CREATED"], states["RUNNING"]) == (3.0, 1.0, 0.0)
    values = {name: family.samples[0].value for name, family in found.items() if len(family.samples) == 1}
    assert values["riseml_queue_experiments"] == 1.0
    assert values["riseml_store_size_bytes"] > 10_000
    assert values["riseml_host_up"] == 1.0
    assert values["riseml_host_cpus"] > 0
    assert "process_resident_memory_bytes" in found
    buckets = [one for one in found["riseml_loop_pass_seconds"].samples if one.name.endswith("_bucket")]
    assert [one.labels["le"] for one in buckets][-1] == "+Inf"
    assert len(buckets) == len(BOUNDS) + 1


def test_a_host_that_has_never_answered_is_down(tmp_path: Path) -> None:
    """An alert on `riseml_host_up == 0` needs the sample, also when the server has just started."""
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data", executor="process")
    application = make_application(settings, threading.Event())
    text = make_exposition(application.services, GpuScrapes(application.services.hosts.pool)).decode()
    application.database.close()
    families = text_string_to_metric_families(text)
    found = {family.name: [sample.value for sample in family.samples] for family in families}
    assert (found["riseml_host_up"], found["riseml_host_cpus"]) == ([0.0], [])


def test_names_follow_the_conventions_of_prometheus(client: httpx.Client) -> None:
    """As `promtool check metrics` has it: help for each, base units, no colons, no type in a name."""
    for name, family in scrape(client).items():
        assert family.documentation, name
        assert name == name.lower()
        assert ":" not in name
        assert not name.endswith(("_total", "_count", "_sum", "_bucket", "_info")) or name == "riseml_build_info"
        assert not any(word in name for word in ("milliseconds", "minutes", "megabytes", "mib", "percent"))
        assert family.type != "histogram" or name.endswith(UNITS)


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


def test_durations_are_counted_in_buckets() -> None:
    counts = DurationCounts()
    for seconds in (0.0, 0.001, 0.002, 1e9, -1.0):
        counts.observe(seconds)
    found, total = counts.read()
    assert (found[0], found[1], found[-1]) == (3, 1, 1)
    assert total == 1e9 + 0.003


def test_a_server_that_starts_does_not_import_the_library() -> None:
    code = "import sys, riseml.server.process; print('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
