"""Hosts that leave the pool."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml import wire
from riseml.base.errors import Conflict, Refused
from riseml.base.names import HostName
from riseml.server.clock import now
from riseml.server.hosts.dismissal import dismiss_host
from riseml.server.hosts.host_set import HostSet
from riseml.spec.pool.types import HostSpec
from tests.support.memory_executor import MemoryExecutor
from tests.unit.server.hosts.conftest import POOL, MemoryHosts, add_host, read_pool_file


def _dismiss(hosts: HostSet, name: str, *jobs: str, force: bool = False, dry_run: bool = False) -> wire.RemovedHost:
    host = HostSpec(HostName(name), f"unix:///{name}")
    return dismiss_host(hosts, host, jobs, force=force, dry_run=dry_run)


def test_a_host_leaves_and_what_stays_is_said(pooled: MemoryHosts) -> None:
    add_host(pooled)
    pooled.use_memory("one", "two")
    executor = pooled.pool.executors[HostName("two")]
    assert isinstance(executor, MemoryExecutor)
    executor.images |= {"riseml/environment:1"}
    executor.site = replace(executor.site, swarm="s1")
    pooled.pool.observe_hosts(frozenset(), now())
    asked = _dismiss(pooled, "two", dry_run=True)
    assert (asked["removed"], asked["environments"], asked["swarm"], asked["answers"]) == (False, 1, "member", True)
    assert "name: two" in read_pool_file(pooled)
    assert _dismiss(pooled, "two")["removed"]
    assert read_pool_file(pooled) == POOL


def test_a_host_with_jobs_stays_unless_forced(pooled: MemoryHosts) -> None:
    add_host(pooled)
    with pytest.raises(Refused, match=r"2 jobs run on host two: 4.master, 4.ps"):
        _dismiss(pooled, "two", "4.master", "4.ps")
    assert not _dismiss(pooled, "two", "4.master", "4.ps", force=True)["answers"]
    assert read_pool_file(pooled) == POOL


def test_the_only_host_stays(pooled: MemoryHosts) -> None:
    with pytest.raises(Conflict, match="one is the only host of the pool"):
        _dismiss(pooled, "one", force=True)
