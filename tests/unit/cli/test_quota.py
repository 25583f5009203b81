"""`quota` and `usage`: what they send, what they print, and which values they refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer

NONE: dict[str, Any] = dict.fromkeys(
    ("gpus", "cpus", "mem_mib", "running", "waiting", "project_bytes", "log_bytes", "output_bytes")
)
USED = {**NONE, "gpus": 3, "cpus": 1.5, "mem_mib": 2048, "running": 2, "waiting": 0, "project_bytes": 512}
QUOTA = {
    "kind": "user",
    "name": "paul",
    "limits": {**NONE, "gpus": 4, "mem_mib": 4096},
    "used": USED,
    "own": ["gpus"],
    "weight": 1.0,
}
OF_PROJECT = {**QUOTA, "kind": "project", "name": "vision", "weight": 2.0}
ROW = {"name": "=paul", "experiments": 3, "gpu_hours": 12.5, "gpu_hours_used": None, "core_hours": 4.0}
ROW |= {"waited": 90.0, "waiting": 1}
USAGE = {"by": "user", "since": "2026-08-24T07:30:00Z", "until": "2026-08-31T07:30:00Z", "rows": [ROW]}


def test_quotas_are_a_table_of_use_and_limits(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /quotas"] = (200, {"team": True, "quotas": [QUOTA, OF_PROJECT]})
    shown = riseml("quota")
    lines = [line.split() for line in shown.out.splitlines()]
    assert lines[0][:6] == ["QUOTA", "OF", "GPUS", "CORES", "MEM", "RUNNING"]
    assert lines[1][:2] == ["paul", "3/4"]
    assert lines[2][:4] == ["project", "vision", "(weight", "2)"]
    assert json.loads(riseml("quota", "--json").out)["quotas"] == [QUOTA, OF_PROJECT]


def test_a_server_with_one_user_says_what_quotas_are_for(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /quotas"] = (200, {"team": False, "quotas": []})
    assert riseml("quota", "show").out.startswith("This server has one user, and no quotas.\nOn a server for a team")


def test_only_what_is_named_is_set(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /quotas/user/paul"] = (200, QUOTA)
    values = ("--gpus", "4", "--cpus", "none", "--mem", "1.5GiB", "--running", "default", "--log-bytes", "1MiB")
    assert riseml("quota", "set", "--user", "paul", *values).code == 0
    sent = json.loads(fake_server.answered["POST /quotas/user/paul"])
    assert sent == {"gpus": 4, "cpus": None, "mem_mib": 1536, "log_bytes": 1048576, "defaults": ["running"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gpus", "4"), "name whose quota it is"),
        (("--user", "paul", "--project", "vision", "--gpus", "4"), "name whose quota it is"),
        (("--user", "paul"), "nothing to change"),
        (("--user", "paul", "--gpus", "-1"), "--gpus must be between 0 and 1,000,000, not -1"),
        (("--user", "paul", "--gpus", "1.5"), "--gpus '1.5' is not a quota"),
        (("--user", "paul", "--gpus", "many"), "--gpus 'many' is not a quota"),
        (("--user", "paul", "--cpus", "nan"), "--cpus must be between 0 and 1,000,000, not nan"),
        (("--user", "paul", "--cpus", "-0.5"), "--cpus must be between 0"),
        (("--user", "paul", "--cpus", "two"), "--cpus 'two' is not a quota"),
        (("--user", "paul", "--mem", "64"), "--mem '64' has no unit"),
        (("--user", "paul", "--mem", "-1GiB"), "--mem '-1GiB' is negative"),
        (("--user", "paul", "--mem", "4Gb"), "--mem '4Gb' has the unit Gb, which means bits"),
        (("--user", "paul", "--output-bytes", "much"), "--output-bytes 'much' is not a size"),
        (("--user", "paul", "--output-bytes", "9999999999TiB"), "--output-bytes '9999999999TiB' is too large"),
        (("--user", "paul", "--output-bytes", "7"), "--output-bytes '7' has no unit"),
        (("--project", "vision", "--weight", "0"), "--weight must be above 0 and at most 1000, not 0"),
        (("--project", "vision", "--weight", "nan"), "--weight must be above 0"),
        (("--project", "vision", "--weight", "2000"), "--weight must be above 0 and at most 1000, not 2000"),
    ],
)
def test_what_is_no_quota_is_refused(riseml: Riseml, arguments: tuple[str, ...], message: str) -> None:
    refused = riseml("quota", "set", *arguments)
    assert refused.code == 2
    assert message in refused.err


def test_usage_is_a_table_csv_or_json(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /usage"] = (200, USAGE)
    assert riseml("usage").out.splitlines()[1].split()[:5] == ["=paul", "12.50", "-", "4.00", "3"]
    assert riseml("usage", "--csv").out.splitlines() == [
        "user,gpu_hours,gpu_hours_used,core_hours,experiments,waited_seconds,waiting",
        "'=paul,12.5,,4,3,90,1",
    ]
    assert json.loads(riseml("usage", "--json").out) == USAGE
    fake_server.answers["GET /usage"] = (200, {**USAGE, "rows": []})
    assert (
        riseml("usage", "--by", "project").out
        == "No experiment had a place since 2026-08-24T07:30:00Z, and none waits.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--since", "yesterday"), "--since 'yesterday' is not a time"),
        (("--by", "host"), "host"),
        (("--csv", "--json"), "--csv and --json are two forms of one answer"),
    ],
)
def test_usage_refuses_what_it_does_not_know(riseml: Riseml, arguments: tuple[str, ...], message: str) -> None:
    refused = riseml("usage", *arguments)
    assert refused.code == 2
    assert message in refused.err
