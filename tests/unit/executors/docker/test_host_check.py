"""What an engine's answers tell `riseml pool check`, and how the swarms of all hosts compare."""

from __future__ import annotations

import pytest

from riseml.base.names import HostName
from riseml.executors.capabilities import Outcome
from riseml.executors.docker.host_check import check_clock, check_data_root, check_gpus, check_version
from riseml.server.hosts.checkup import compare_swarms
from riseml.spec.pool.types import HostSpec

PLAIN = HostSpec(HostName("h1"), "unix:///run/docker.sock")
WITH_GPUS = HostSpec(HostName("h1"), "unix:///run/docker.sock", gpus=("0",))


@pytest.mark.parametrize(("version", "is_old"), [("1.40", True), ("1.41", False), ("1.100", False), ("2.0", False)])
def test_an_engine_before_20_10_is_too_old(version: str, *, is_old: bool) -> None:
    found = check_version({"Version": "20.10.24", "ApiVersion": version})
    assert (found is not None and found.outcome is Outcome.FAILED) == is_old


@pytest.mark.parametrize(
    ("version", "is_open"),
    [("20.10.5+dfsg1", True), ("20.10.8", True), ("20.10.9", False), ("20.10.24+dfsg1", False), ("dev", False)],
)
def test_an_engine_whose_containers_other_users_reach_is_noted(version: str, *, is_open: bool) -> None:
    found = check_data_root({"Version": version})
    assert (found is not None and "20.10.9 or newer" in found.message) == is_open


@pytest.mark.parametrize(
    ("offset", "outcome", "words"),
    [
        (-4, Outcome.OK, "within 4 s of"),
        (4, Outcome.OK, "within 3 s of"),
        (7, Outcome.NOTE, "6 s behind this server's clock"),
        (-6, Outcome.NOTE, "6 s ahead of this server's clock"),
        (30, Outcome.NOTE, "29 s behind"),
        (-31, Outcome.FAILED, "31 s ahead of"),
        (600, Outcome.FAILED, "599 s behind"),
    ],
)
def test_a_clock_is_noted_beyond_5_s_and_fails_beyond_30_s(offset: float, outcome: Outcome, words: str) -> None:
    asked_at = 1_788_161_026 + offset
    found = check_clock("2026-08-31T07:23:46.123456789Z", asked_at, asked_at)
    assert found.outcome is outcome
    assert words in found.message
    assert ("set its clock" in found.message) == (outcome is not Outcome.OK)


def test_a_late_answer_is_no_wrong_clock() -> None:
    asked_at = 1_788_161_016
    assert check_clock("2026-08-31T07:23:46Z", asked_at, asked_at + 20).outcome is Outcome.OK, "the engine was busy"


def test_gpus_need_the_nvidia_runtime() -> None:
    assert check_gpus({"Runtimes": None}, PLAIN) is None
    assert check_gpus({"Runtimes": {"nvidia": {}}}, WITH_GPUS) is None
    found = check_gpus({"Runtimes": {"runc": {}}}, WITH_GPUS)
    assert found is not None
    assert found.outcome is Outcome.FAILED


def test_a_host_in_another_swarm_or_in_none_fails() -> None:
    swarms = {HostName(name): swarm for name, swarm in (("a", "s1"), ("b", "s2"), ("c", "s1"), ("d", ""))}
    outcomes = {name: finding.outcome is Outcome.OK for name, finding in compare_swarms(swarms)}
    assert outcomes == {"a": True, "b": False, "c": True, "d": False}
