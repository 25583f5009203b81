"""All hosts: one answers, one is slow, one is silent."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from riseml.base.names import HostName
from riseml.executors.pool import HostPool
from riseml.model import Capacity, HostObservation
from tests.support.memory_executor import MemoryExecutor
from tests.support.waiting import DEADLINE

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
NOTHING: frozenset[str] = frozenset()


class SlowExecutor(MemoryExecutor):
    """A host that answers after `may` is set."""

    def __init__(self, name: HostName, capacity: Capacity) -> None:
        super().__init__(name, capacity)
        self.may = threading.Event()

    def observe(self, references: frozenset[str]) -> HostObservation:
        assert self.may.wait(DEADLINE)
        return super().observe(references)


def list_answering(pool: HostPool) -> list[HostName]:
    return [name for name, host in pool.list_last_seen().items() if host.silent_since is None]


def test_a_host_that_is_only_slow_still_takes_experiments() -> None:
    host = SlowExecutor(HostName("h1"), Capacity(4, 8192))
    pool = HostPool((host,), 0.05, lambda *_: None)
    pool.observe_hosts(NOTHING, NOW)
    assert not pool.has_usable_host(), "it has never answered"
    host.may.set()
    while not list_answering(pool):
        pool.observe_hosts(NOTHING, NOW)
    host.may.clear()
    pool.observe_hosts(NOTHING, NOW)
    assert list_answering(pool) == []
    assert pool.has_usable_host()
    host.faults.silent = True
    host.may.set()
    while not pool.list_problems():
        pool.observe_hosts(NOTHING, NOW)
    assert not pool.has_usable_host(), "it is known that it does not"


def test_a_host_that_answers_an_earlier_pass_is_late_until_it_is_asked_again() -> None:
    host = SlowExecutor(HostName("h1"), Capacity(4, 8192))
    pool = HostPool((host,), 0.05, lambda *_: None)
    assert pool.list_late() == frozenset()
    pool.observe_hosts(NOTHING, NOW)
    assert pool.list_late() == {host.name}
    host.may.set()
    while not list_answering(pool):
        assert pool.list_late() == {host.name}
        pool.observe_hosts(NOTHING, NOW)
    assert pool.list_late() == frozenset()
