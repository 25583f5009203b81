"""A submission to a server that has just started waits for the first answer of a slow host."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from riseml.base.names import HostName
from riseml.base.settings import Settings
from riseml.executors.pool import HostPool
from riseml.model import Capacity
from riseml.server.api.waiting import wait_for_any_host
from riseml.server.hosts.host_set import HostSet
from riseml.server.reconcile.passes import PassCounter
from riseml.server.reconcile.wake import Wake
from tests.support.memory_executor import MemoryExecutor, SlowExecutor
from tests.unit.server.api.conftest import NOW

SLOW = 6  # passes until a slow host answers


@contextmanager
def run_passes(pool: HostPool, host: MemoryExecutor) -> Iterator[PassCounter]:
    """Observe a host pass after pass, as the loop does."""
    passes, ended = PassCounter(Wake(), NOW), threading.Event()

    def run() -> None:
        count = 0
        while not ended.is_set():
            pool.observe_hosts(frozenset(), NOW)
            passes.complete_pass()
            count += 1
            if count >= SLOW and isinstance(host, SlowExecutor):
                host.may.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield passes
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("kind", [SlowExecutor, MemoryExecutor], ids=["slow", "away"])
def test_a_submission_waits_until_a_host_answers_or_is_known_to_be_away(
    tmp_path: Path, kind: type[MemoryExecutor]
) -> None:
    host = kind(HostName("h1"), Capacity(1, 64))
    host.faults.silent = kind is MemoryExecutor
    pool = HostPool((host,), 0.02, lambda *_: None)
    hosts = HostSet(Settings(tmp_path, tmp_path, tmp_path), "server", pool)
    with run_passes(pool, host) as passes:
        wait_for_any_host(hosts, passes)
    assert hosts.is_any_answering() is (kind is SlowExecutor)
    assert bool(hosts.find_troubles()) is (kind is MemoryExecutor)
