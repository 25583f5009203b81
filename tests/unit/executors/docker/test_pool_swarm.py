"""The swarm of a pool: which hosts take part in a change of it, and that one change follows the other."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from riseml.base.errors import EngineError
from riseml.base.names import THIS_MACHINE, HostName
from riseml.executors.base import Executor
from riseml.executors.docker import swarm
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.docker.pool_swarm import PoolSwarm
from riseml.executors.docker.swarm import SwarmHost
from riseml.executors.swarm_changes import Membership
from riseml.executors.transports.engine_client import Engine
from riseml.model import Capacity
from riseml.spec.pool.types import HostSpec
from tests.support.memory_executor import MemoryExecutor
from tests.support.waiting import DEADLINE

URL = "unix:///none.sock"


class CountedExecutor(DockerExecutor):
    """An engine that counts how often riseml reads its facts again."""

    forgotten = 0

    def forget_facts(self) -> None:
        self.forgotten += 1
        super().forget_facts()


def make_executor(name: str, address: str) -> CountedExecutor:
    return CountedExecutor(HostSpec(HostName(name), URL, address=address), "5e17e4", Engine(URL))


@pytest.fixture
def hosts() -> list[Executor]:
    """Two engines, and a host that is none."""
    other = MemoryExecutor(THIS_MACHINE, Capacity(1.0, 1024))
    return [make_executor("h1", "10.0.0.1"), other, make_executor("h2", "10.0.0.2")]


def count_forgotten(hosts: Sequence[Executor]) -> list[int]:
    return [host.forgotten for host in hosts if isinstance(host, CountedExecutor)]


def test_only_engines_join_with_their_addresses_and_a_candidate_with_them(
    hosts: list[Executor], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[tuple[str, str | None]]] = []

    def join(members: Sequence[SwarmHost], server: str) -> dict[HostName, Membership]:
        asked.append([(member.name, member.address) for member in members])
        return {member.name: Membership.JOINED for member in members}

    monkeypatch.setattr(swarm, "join_swarm", join)
    pool = PoolSwarm("5e17e4", lambda: hosts)
    assert set(pool.join()) == {"h1", "h2"}
    pool.join(make_executor("h3", "10.0.0.3"))
    assert asked == [
        [("h1", "10.0.0.1"), ("h2", "10.0.0.2")],
        [("h1", "10.0.0.1"), ("h2", "10.0.0.2"), ("h3", "10.0.0.3")],
    ]
    assert count_forgotten(hosts) == [2, 2]


def test_the_facts_of_all_hosts_are_read_again_also_after_a_change_that_failed(
    hosts: list[Executor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise EngineError("an engine refuses")

    monkeypatch.setattr(swarm, "join_swarm", refuse)
    with pytest.raises(EngineError):
        PoolSwarm("5e17e4", lambda: hosts).join()
    assert count_forgotten(hosts) == [1, 1]


def test_a_second_change_waits_for_the_first(hosts: list[Executor], monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Semaphore(0), threading.Event()
    at_once: list[int] = []
    running: set[int] = set()

    def join(members: Sequence[SwarmHost], server: str) -> dict[HostName, Membership]:
        running.add(threading.get_ident())
        at_once.append(len(running))
        begun.release()
        assert may_end.wait(DEADLINE)
        running.discard(threading.get_ident())
        return {}

    monkeypatch.setattr(swarm, "join_swarm", join)
    pool = PoolSwarm("5e17e4", lambda: hosts)
    threads = [threading.Thread(target=pool.join, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert begun.acquire(timeout=DEADLINE)
    assert not begun.acquire(timeout=0.1), "the second has begun beside the first"
    may_end.set()
    for thread in threads:
        thread.join(DEADLINE)
    assert at_once == [1, 1]
