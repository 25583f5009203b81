"""What an engine says of its machine, and for how long one answer counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import docker
import pytest

from riseml.base.names import HostName
from riseml.executors.docker.facts import FRESH, STILL_FRESH, FactsReader
from riseml.spec.pool.types import HostSpec


class Machine(docker.APIClient):
    """An engine without a connection, which counts its calls."""

    def __init__(self) -> None:
        self.asked = 0

    def info(self) -> dict[str, Any]:
        self.asked += 1
        return {"NCPU": 2, "MemTotal": 4 << 30, "ServerVersion": "20.10.24"}


def test_a_start_waits_for_no_facts_that_another_pass_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("riseml.executors.docker.facts.time", SimpleNamespace(monotonic=lambda: now[0]))
    reader, machine = FactsReader(HostSpec(HostName("h1"), "unix:///x")), Machine()
    assert reader.read_fresh(machine, STILL_FRESH).version == "20.10.24"
    for seconds, oldest, asked in (
        (14, FRESH, 1),
        (30, STILL_FRESH, 1),
        (0, FRESH, 2),
        (61, STILL_FRESH, 3),
    ):
        now[0] += seconds
        reader.read_fresh(machine, oldest)
        assert machine.asked == asked, (seconds, oldest)
