"""Which hosts `pool add` takes, and what it leaves behind when it takes none. Real hosts: tests/real/transports."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from riseml import wire
from riseml.base.errors import Conflict, Refused, RisemlError, Unreachable, UsageError
from riseml.base.names import LOCAL_HOST, HostName
from riseml.base.settings import Settings
from riseml.executors.base import Executor
from riseml.executors.capabilities import Finding, HostReport, Outcome
from riseml.executors.pool import HostPool
from riseml.model import Capacity, HostObservation, World
from riseml.server.clock import now
from riseml.server.hosts.admission import admit_host
from riseml.server.hosts.dismissal import dismiss_host
from riseml.server.hosts.host_set import HostSet
from riseml.spec.pool.loader import load_pool
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


def _begin_with(hosts: MemoryHosts, text: str) -> None:
    hosts.settings.pool_file.write_text(text)
    hosts.open_hosts(World(()))


@pytest.fixture
def pooled(hosts: MemoryHosts) -> MemoryHosts:
    """A pool of one host."""
    _begin_with(hosts, POOL)
    hosts.use_memory("one")
    return hosts


def _add(hosts: HostSet, **said: object) -> wire.AddedHost:
    return admit_host(hosts, {**TWO, **said}, {})  # type: ignore[typeddict-item]  # said by the test


def _text(hosts: HostSet) -> str:
    return hosts.settings.pool_file.read_text()


def test_a_host_that_fits_is_written_below_the_others(pooled: MemoryHosts) -> None:
    found = _add(pooled, mem="16GiB", labels={"gpu": "a100"})
    assert (found["state"], found["cpus"], found["keys"]) == ("added", 8.0, None)
    assert _text(pooled) == POOL.replace("network", found["entry"] + "network")
    assert "mem: 16GiB" in found["entry"]


def test_a_dry_run_changes_nothing(pooled: MemoryHosts) -> None:
    assert _add(pooled, dry_run=True)["state"] == "fit"
    assert _text(pooled) == POOL


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ({"name": "one"}, Conflict, "the pool has a host one already, at unix:///one"),
        ({"url": "unix:///one"}, Conflict, "the pool has this engine already, as host one"),
        ({"url": "unix:/one"}, UsageError, r"host two cannot be added: hosts\[1\].url"),
        ({"name": "Two"}, UsageError, r"host Two cannot be added: hosts\[1\].name"),
        ({"address": ""}, UsageError, r"hosts\[1\].address"),
        ({"mem": "16 Gb"}, UsageError, r"hosts\[1\].mem"),
        ({"gpus": ["a"]}, UsageError, r"hosts\[1\].gpus"),
        ({"url": "tcp://two:2375"}, UsageError, "any client that reaches this port is root"),
        ({"url": "tcp://two:2376", "tls": "/none"}, UsageError, "/none/ca.pem does not exist"),
    ],
)
def test_what_cannot_be_a_host_is_refused(
    pooled: MemoryHosts, said: dict[str, object], kind: type[RisemlError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        _add(pooled, **said)
    assert _text(pooled) == POOL


def test_a_host_that_fails_a_check_is_refused_unless_forced(pooled: MemoryHosts) -> None:
    old = Finding("version", Outcome.FAILED, "Docker 19.03 is too old")
    late = Finding("clock", Outcome.NOTE, "within 90 s of this server's clock")
    pooled.candidate.report = HostReport((old, late))
    with pytest.raises(Refused, match=r"host two does not fit: version: Docker 19.03 is too old$"):
        _add(pooled)
    assert _text(pooled) == POOL
    found = _add(pooled, force=True)
    assert {"host": "two", "topic": "clock", "outcome": "note", "message": late.message} in found["findings"]


def test_one_engine_under_two_addresses_is_refused(pooled: MemoryHosts) -> None:
    (first,) = pooled.pool.executors.values()
    assert isinstance(first, MemoryExecutor)
    first.report = pooled.candidate.report = HostReport((), engine="5GHB:Q4")
    with pytest.raises(Refused, match="it is the engine of one under another address"):
        _add(pooled)


def test_a_host_with_another_storage_is_refused(pooled: MemoryHosts) -> None:
    _begin_with(pooled, POOL + "storage: {output: /mnt/output}\n")
    pooled.use_memory("one")
    with pytest.raises(Refused, match="output: /mnt/output is not the storage that one writes"):
        _add(pooled)
    (first,) = pooled.pool.executors.values()
    assert isinstance(first, MemoryExecutor)
    pooled.candidate.files = first.files
    assert _add(pooled)["state"] == "added"


def test_a_host_that_does_not_answer_is_refused(pooled: MemoryHosts) -> None:
    pooled.candidate.faults.silent = True
    with pytest.raises(Unreachable, match="does not answer"):
        _add(pooled, force=True)
    assert _text(pooled) == POOL


def test_the_first_host_does_not_strand_the_jobs_of_this_machine(hosts: MemoryHosts) -> None:
    jobs = {LOCAL_HOST: ["4.train"]}
    with pytest.raises(Refused, match=r"jobs run on this machine, which the pool would not have: 4.train") as refusal:
        admit_host(hosts, {"name": "two", "url": "unix:///two"}, jobs)
    assert f"`riseml pool add {LOCAL_HOST} unix:///var/run/docker.sock` first" in str(refusal.value.hint)
    assert not hosts.settings.pool_file.exists()
    assert admit_host(hosts, {"name": "two", "url": "unix:///two"}, {})["state"] == "added"


def test_hosts_that_join_at_once_are_all_there(pooled: MemoryHosts) -> None:
    def add(number: int) -> None:
        _add(pooled, name=f"h{number}", url=f"unix:///h{number}", address=f"192.0.2.{number}")

    with ThreadPoolExecutor(6) as workers:
        list(workers.map(add, range(10, 16)))
    hosts = load_pool(_text(pooled), pooled.settings.pool_file).hosts
    assert sorted(host.name for host in hosts) == [*(f"h{number}" for number in range(10, 16)), "one"]


def test_of_two_hosts_of_one_name_that_join_at_once_one_is_refused(pooled: MemoryHosts) -> None:
    def add(number: int) -> str:
        try:
            return _add(pooled, url=f"unix:///h{number}")["state"]
        except Conflict:
            return "refused"

    with ThreadPoolExecutor(4) as workers:
        answers = list(workers.map(add, range(4)))
    assert sorted(answers) == ["added", "refused", "refused", "refused"]


def test_a_file_with_problems_gets_no_host(pooled: MemoryHosts) -> None:
    pooled.settings.pool_file.write_text("hosts: []\n")
    with pytest.raises(UsageError, match="has problems, so that no host can be added"):
        _add(pooled)


def _dismiss(hosts: HostSet, name: str, *jobs: str, force: bool = False, dry_run: bool = False) -> wire.RemovedHost:
    host = HostSpec(HostName(name), f"unix:///{name}")
    return dismiss_host(hosts, host, jobs, force=force, dry_run=dry_run)


def test_a_host_leaves_and_what_stays_is_said(pooled: MemoryHosts) -> None:
    _add(pooled)
    pooled.use_memory("one", "two")
    executor = pooled.pool.executors[HostName("two")]
    assert isinstance(executor, MemoryExecutor)
    executor.images |= {"riseml/environment:1"}
    executor.site = replace(executor.site, swarm="s1")
    pooled.pool.observe_hosts(frozenset(), now())
    asked = _dismiss(pooled, "two", dry_run=True)
    assert (asked["removed"], asked["environments"], asked["swarm"], asked["answers"]) == (False, 1, "member", True)
    assert "name: two" in _text(pooled)
    assert _dismiss(pooled, "two")["removed"]
    assert _text(pooled) == POOL


def test_a_host_with_jobs_stays_unless_forced(pooled: MemoryHosts) -> None:
    _add(pooled)
    with pytest.raises(Refused, match=r"2 jobs run on host two: 4.master, 4.ps"):
        _dismiss(pooled, "two", "4.master", "4.ps")
    assert not _dismiss(pooled, "two", "4.master", "4.ps", force=True)["answers"]
    assert _text(pooled) == POOL


def test_the_only_host_stays(pooled: MemoryHosts) -> None:
    with pytest.raises(Conflict, match="one is the only host of the pool"):
        _dismiss(pooled, "one", force=True)
