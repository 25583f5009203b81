"""Which hosts `pool add` takes, and what it leaves behind when it takes none. Real hosts: tests/real/transports."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from riseml.base.errors import Conflict, Refused, RisemlError, Unreachable, UsageError
from riseml.base.names import LOCAL_HOST
from riseml.executors.capabilities import Finding, HostReport, Outcome
from riseml.server.hosts.admission import admit_host
from riseml.spec.pool.loader import load_pool
from tests.support.memory_executor import MemoryExecutor
from tests.unit.server.hosts.conftest import POOL, MemoryHosts, add_host, begin_with, read_pool_file


def test_a_host_that_fits_is_written_below_the_others(pooled: MemoryHosts) -> None:
    found = add_host(pooled, mem="16GiB", labels={"gpu": "a100"})
    assert (found["state"], found["cpus"], found["keys"]) == ("added", 8.0, None)
    assert read_pool_file(pooled) == POOL.replace("network", found["entry"] + "network")
    assert "mem: 16GiB" in found["entry"]


def test_a_dry_run_changes_nothing(pooled: MemoryHosts) -> None:
    assert add_host(pooled, dry_run=True)["state"] == "fit"
    assert read_pool_file(pooled) == POOL


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
        add_host(pooled, **said)
    assert read_pool_file(pooled) == POOL


def test_a_host_that_fails_a_check_is_refused_unless_forced(pooled: MemoryHosts) -> None:
    old = Finding("version", Outcome.FAILED, "Docker 19.03 is too old")
    late = Finding("clock", Outcome.NOTE, "within 90 s of this server's clock")
    pooled.candidate.report = HostReport((old, late))
    with pytest.raises(Refused, match=r"host two does not fit: version: Docker 19.03 is too old$"):
        add_host(pooled)
    assert read_pool_file(pooled) == POOL
    found = add_host(pooled, force=True)
    assert {"host": "two", "topic": "clock", "outcome": "note", "message": late.message} in found["findings"]


def test_one_engine_under_two_addresses_is_refused(pooled: MemoryHosts) -> None:
    (first,) = pooled.pool.executors.values()
    assert isinstance(first, MemoryExecutor)
    first.report = pooled.candidate.report = HostReport((), engine="5GHB:Q4")
    with pytest.raises(Refused, match="it is the engine of one under another address"):
        add_host(pooled)


def test_a_host_with_another_storage_is_refused(pooled: MemoryHosts) -> None:
    begin_with(pooled, POOL + "storage: {output: /mnt/output}\n")
    pooled.use_memory("one")
    with pytest.raises(Refused, match="output: /mnt/output is not the storage that one writes"):
        add_host(pooled)
    (first,) = pooled.pool.executors.values()
    assert isinstance(first, MemoryExecutor)
    pooled.candidate.files = first.files
    assert add_host(pooled)["state"] == "added"


def test_a_host_that_does_not_answer_is_refused(pooled: MemoryHosts) -> None:
    pooled.candidate.faults.silent = True
    with pytest.raises(Unreachable, match="does not answer"):
        add_host(pooled, force=True)
    assert read_pool_file(pooled) == POOL


def test_the_first_host_does_not_strand_the_jobs_of_this_machine(hosts: MemoryHosts) -> None:
    jobs = {LOCAL_HOST: ["4.train"]}
    with pytest.raises(Refused, match=r"jobs run on this machine, which the pool would not have: 4.train") as refusal:
        admit_host(hosts, {"name": "two", "url": "unix:///two"}, jobs)
    assert f"`riseml pool add {LOCAL_HOST} unix:///var/run/docker.sock` first" in str(refusal.value.hint)
    assert not hosts.settings.pool_file.exists()
    assert admit_host(hosts, {"name": "two", "url": "unix:///two"}, {})["state"] == "added"


def test_hosts_that_join_at_once_are_all_there(pooled: MemoryHosts) -> None:
    def add(number: int) -> None:
        add_host(pooled, name=f"h{number}", url=f"unix:///h{number}", address=f"192.0.2.{number}")

    with ThreadPoolExecutor(6) as workers:
        list(workers.map(add, range(10, 16)))
    hosts = load_pool(read_pool_file(pooled), pooled.settings.pool_file).hosts
    assert sorted(host.name for host in hosts) == [*(f"h{number}" for number in range(10, 16)), "one"]


def test_of_two_hosts_of_one_name_that_join_at_once_one_is_refused(pooled: MemoryHosts) -> None:
    def add(number: int) -> str:
        try:
            return add_host(pooled, url=f"unix:///h{number}")["state"]
        except Conflict:
            return "refused"

    with ThreadPoolExecutor(4) as workers:
        answers = list(workers.map(add, range(4)))
    assert sorted(answers) == ["added", "refused", "refused", "refused"]


def test_a_file_with_problems_gets_no_host(pooled: MemoryHosts) -> None:
    pooled.settings.pool_file.write_text("hosts: []\n")
    with pytest.raises(UsageError, match="has problems, so that no host can be added"):
        add_host(pooled)
