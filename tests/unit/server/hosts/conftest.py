"""A pool of hosts in memory, with its pool.yml."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from riseml import wire
from riseml.base.names import HostName
from riseml.base.settings import Settings
from riseml.executors.base import Executor
from riseml.executors.pool import HostPool
from riseml.model import Capacity, HostObservation, World
from riseml.server.clock import now
from riseml.server.hosts.admission import admit_host
from riseml.server.hosts.host_set import HostSet
from riseml.spec.pool.types import HostSpec
from tests.support.memory_executor import MemoryExecutor

ROOM = Capacity(8.0, 32_768)


POOL = "hosts:\n  - {name: one, url: 'unix:///one', address: 192.0.2.1}  # the first\nnetwork: host\n"


TWO = {"name": "two", "url": "unix:///two", "address": "192.0.2.2"}


class MemoryHosts(HostSet):
    """A pool whose hosts are in memory."""

    def __init__(self, home: Path) -> None:
        settings = Settings(home, home / "output", home / "data")
        super().__init__(settings, "5e17e4", HostPool((), 10.0, lambda *_: None))
        self.candidate = MemoryExecutor(HostName("two"), ROOM, HostObservation(ROOM))

    @contextmanager
    def try_host(self, host: HostSpec) -> Iterator[Executor]:
        yield self.candidate

    def use_memory(self, *names: str) -> None:
        """Put hosts in memory in the place of the engines."""
        made = tuple(MemoryExecutor(HostName(name), ROOM) for name in names)
        self.pool.replace_executors(made)
        self.pool.observe_hosts(frozenset(), now())


@pytest.fixture
def hosts(tmp_path: Path) -> MemoryHosts:
    return MemoryHosts(tmp_path)


def begin_with(hosts: MemoryHosts, text: str) -> None:
    hosts.settings.pool_file.write_text(text)
    hosts.open_hosts(World(()))


@pytest.fixture
def pooled(hosts: MemoryHosts) -> MemoryHosts:
    """A pool of one host."""
    begin_with(hosts, POOL)
    hosts.use_memory("one")
    return hosts


def add_host(hosts: HostSet, **said: object) -> wire.AddedHost:
    return admit_host(hosts, {**TWO, **said}, {})  # type: ignore[typeddict-item]  # said by the test


def read_pool_file(hosts: HostSet) -> str:
    return hosts.settings.pool_file.read_text()
