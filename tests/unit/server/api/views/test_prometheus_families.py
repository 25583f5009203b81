"""GET /metrics: what Prometheus' own parser reads, names after its conventions, no import before the first scrape."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import httpx
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from riseml.base.settings import Settings
from riseml.server.api.views.prometheus_families import make_exposition
from riseml.server.app import make_application
from riseml.server.timings import BOUNDS
from riseml.server.usage.gpu_readings import GpuScrapes

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


def test_a_server_that_starts_does_not_import_the_library() -> None:
    code = "import sys, riseml.server.process; print('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
