"""What `pool check` finds on hosts, and in what they share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from riseml.executors.capabilities import Capabilities, Finding, HostReport, Outcome
from riseml.model import Capacity, Mount
from riseml.server.hosts.checkup import check_pool, check_storage, list_answering
from riseml.server.hosts.team_rules import TeamRules
from tests.support.memory_executor import MemoryExecutor
from tests.unit.server.memory_pool import H1, H2, make_host, make_hosts

ROOT = (Mount("/out", "/output"), (Mount("/data", "/data"),))


class WithoutCheck(MemoryExecutor):
    """A host that cannot be checked."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, check=None)


@pytest.mark.parametrize(
    ("same", "shared", "outcomes"),
    [(True, True, ["ok", "ok"]), (False, True, ["ok", "failed"]), (False, False, ["ok"])],
)
def test_hosts_read_what_the_first_one_writes(same: bool, shared: bool, outcomes: list[str]) -> None:  # noqa: FBT001  # parameters of the test
    first, second = make_host(H1), make_host(H2)
    if same:
        second.files = first.files
    findings = [
        (name, finding)
        for name, finding in check_storage(ROOT, [(H1, first), (H2, second)], shared=shared)
        if finding.topic == "output"
    ]
    assert [finding.outcome.value for _, finding in findings] == outcomes
    if "failed" in outcomes:
        assert findings[1][1].message == "/out is not the storage that h1 writes: mount the same one there"


def test_each_host_reports_for_itself(tmp_path: Path) -> None:
    host = make_host(H1)
    host.report = HostReport((Finding("clock", Outcome.OK, "is right"),), frozenset())
    silent = make_host(H2)
    silent.faults.silent = True
    hosts = make_hosts(tmp_path, host, silent)
    findings = [(finding["host"], finding["topic"], finding["outcome"]) for finding in check_pool(hosts)]
    assert findings[:2] == [("h1", "clock", "ok"), ("h2", "connection", "failed")]
    assert ("h1", "output", "ok") in findings
    assert [name for name, _ in list_answering(hosts)] == [H1]


def test_a_host_of_a_kind_that_cannot_be_checked_is_named(tmp_path: Path) -> None:
    hosts = make_hosts(tmp_path, WithoutCheck(H1, Capacity(1, 1)))
    assert [finding["message"] for finding in check_pool(hosts)] == ["this kind of host cannot be checked"]
    assert list_answering(hosts) == []


def test_what_matters_between_users_is_an_error_on_a_teams_server(tmp_path: Path) -> None:
    host = make_host(H1)
    topics = ("reach", "output", "isolation")
    host.report = HostReport(tuple(Finding(topic, Outcome.NOTE, "look at this") for topic in topics), frozenset())
    for rules, outcomes in (
        (None, ["note", "note", "note"]),
        (TeamRules(), ["failed", "failed", "note"]),
    ):
        findings = check_pool(make_hosts(tmp_path, host, rules=rules))
        assert [row["outcome"] for row in findings if row["message"] == "look at this"] == outcomes
