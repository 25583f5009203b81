"""Hosts as lines."""

from __future__ import annotations

import re

from riseml import __version__
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import HOSTS, FakeServer


def test_the_hosts_have_a_total_and_versions(riseml: Riseml, fake_server: FakeServer) -> None:
    gpus = {"gpus": 2, "gpus_used": 1, "gpu_mem_mib": 81920, "gpu_driver": "535.129.03"}
    hosts = [
        {**HOSTS[0], "name": "gpu1", **gpus},
        {**HOSTS[0], "name": "gpu2", "gpus": 1, "gpu_mem_mib": 24576},
        {**HOSTS[0], "name": "gpu3", "state": "silent", "engine": "", "cpus": 0, "cpus_used": 0, "mem_mib": 0}
        | {"mem_mib_used": 0},
    ]
    fake_server.answers["GET /system"] = (200, {"server": fake_server.server, "hosts": hosts})
    version, server, engines, _, head, *rows = riseml("system", "info").out.splitlines()
    assert version == f"Client/Server Version: {__version__}/{fake_server.server['version']}"
    assert (server, engines) == (f"Server ID: {fake_server.server['id']}", "Engines: Docker 20.10.24 (gpu1, gpu2)")
    assert re.split(" {2,}", head)[-1] == "GPU MEM"
    assert [re.split(" {2,}", row) for row in rows] == [
        ["gpu1", "up", "0.5/2", "1.0/16.0 GiB", "1/2", "80.0 GiB"],
        ["gpu2", "up", "0.5/2", "1.0/16.0 GiB", "0/1", "24.0 GiB"],
        ["gpu3", "silent", "-", "-", "-", "-"],
        ["Total", "1/4", "2.0/32.0 GiB", "1/3", "104.0 GiB"],
    ]
    assert re.split(" {2,}", riseml("system", "info", "-l").out.splitlines()[-4])[-2:] == [
        "535.129.03",
        "Docker 20.10.24",
    ]


def test_a_silent_and_drained_host_shows_both_states(riseml: Riseml, fake_server: FakeServer) -> None:
    silent = {**HOSTS[0], "state": "silent", "drained": True, "message": "no way there", "mem_mib": 0}
    fake_server.answers["GET /system"] = (200, {"server": fake_server.server, "hosts": [silent]})
    result = riseml("system", "info")
    assert "silent, drained" in result.out
    assert result.err == "warning: local: no way there\n"
