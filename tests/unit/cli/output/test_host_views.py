"""Hosts as lines."""

from __future__ import annotations

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import HOSTS, FakeServer


def test_a_silent_and_drained_host_shows_both_states(riseml: Riseml, fake_server: FakeServer) -> None:
    silent = {**HOSTS[0], "state": "silent", "drained": True, "message": "no way there", "mem_mib": 0}
    fake_server.answers["GET /system"] = (200, {"server": fake_server.server, "hosts": [silent]})
    result = riseml("system", "info")
    assert "silent, drained" in result.out
    assert result.err == "warning: local: no way there\n"
