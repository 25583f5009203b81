"""A real Prometheus scrapes the API; its lint accepts every metric, and Grafana's dashboard names no other ones.

`scripts/engine/prometheus` unpacks Debian's package below the cache of the tests where Prometheus is not installed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE, wait_for
from tests.support.without_tls import NO_AUTHORITIES
from tests.unit.server.api.conftest import client, served_application, url

__all__ = ["client", "served_application", "url"]  # fixtures

UNPACKED = Path.home() / ".cache/riseml/prometheus/usr/bin"
DASHBOARD = Path(__file__).parents[3] / "examples/grafana/riseml.json"


def find_program(name: str) -> str:
    """Return the path of a program."""
    found = shutil.which(name) or shutil.which(name, path=str(UNPACKED))
    assert found is not None, f"there is no {name} here: run scripts/engine/prometheus"
    return found


def test_prometheus_scrapes_and_its_lint_finds_nothing(client: httpx.Client, url: str, tmp_path: Path) -> None:
    lint = subprocess.run(
        [find_program("promtool"), "check", "metrics"], input=client.get("/metrics").content, capture_output=True
    )
    assert (lint.returncode, lint.stderr + lint.stdout) == (0, b"")
    job = {"job_name": "riseml", "scrape_interval": "1s", "static_configs": [{"targets": [urlsplit(url).netloc]}]}
    (tmp_path / "prometheus.yml").write_text(json.dumps({"scrape_configs": [job]}))
    address = f"127.0.0.1:{find_free_port()}"
    words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([find_program("prometheus"), *words], cwd=tmp_path, stdout=log, stderr=log)
    try:
        whole = 'riseml_experiments{state="CREATED"} and on(job) up == 1'  # a scrape that is late has no metrics
        found = wait_for("a scrape", lambda: _ask(address, whole), DEADLINE)
        assert found == "1"
    finally:
        process.kill()
        process.wait()


def _ask(address: str, query: str) -> str | None:
    """Return the value of a query; None while there is none."""
    try:
        answer = httpx.get(
            f"http://{address}/api/v1/query", params={"query": query}, timeout=DEADLINE, verify=NO_AUTHORITIES
        )
        found = answer.json()["data"]["result"]
    except (httpx.HTTPError, ValueError, KeyError):
        return None
    return str(found[0]["value"][1]) if found else None


def test_the_dashboard_asks_for_what_there_is(client: httpx.Client) -> None:
    said = set(re.findall(r"^# TYPE (\S+)", client.get("/metrics").text, re.MULTILINE))
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 10
    for panel in panels:
        for target in panel["targets"]:
            names = set(re.findall(r"\b(?:riseml|process)_\w+", target["expr"]))
            assert {name.removesuffix("_bucket") for name in names} <= said, target["expr"]
