"""A pool of hosts in memory."""

from __future__ import annotations

from pathlib import Path

from riseml.base.names import HostName
from riseml.base.settings import Settings
from riseml.executors.pool import HostPool
from riseml.model import Capacity
from riseml.server.clock import now
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.team_rules import TeamRules
from tests.support.memory_executor import MemoryExecutor

H1, H2 = HostName("h1"), HostName("h2")


def make_host(name: HostName = H1) -> MemoryExecutor:
    """Return a host of four cores."""
    return MemoryExecutor(name, Capacity(4.0, 4096))


def make_hosts(folder: Path, *executors: MemoryExecutor, rules: TeamRules | None = None) -> HostSet:
    """Return hosts that have been asked once."""
    settings = Settings(folder, folder / "output", folder / "data")
    hosts = HostSet(settings, "5e17e4", HostPool(executors, 2.0, lambda *_: None), rules=rules)
    hosts.pool.observe_hosts(frozenset(), now())
    return hosts
