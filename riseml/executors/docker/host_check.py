"""The checks of `riseml pool check` for one engine and its host."""

from __future__ import annotations

import re
import time
from datetime import datetime
from typing import Any

import docker

from riseml.executors.capabilities import Finding, HostReport, Outcome
from riseml.executors.docker import labels
from riseml.executors.docker.facts import parse_facts
from riseml.executors.docker.gpu_probe import offers_gpus
from riseml.spec.pool.types import HostSpec

_OLDEST = (1, 41)  # version of the Docker Engine API; Docker 20.10
# the first Docker that protects the files of containers from other users of the machine
_CLOSED_DATA_ROOT = (20, 10, 9)
_SKEW = 5.0  # seconds between two clocks that make logs hard to read together
_MOST_SKEW = 30.0  # seconds from which on a host does not fit: graces and limits of time are wrong by that much


def inspect_host(api: docker.APIClient, host: HostSpec) -> HostReport:
    """Return one finding for each topic; a topic without a problem may have none."""
    version = api.version()
    asked_at = time.time()
    info = api.info()
    answered_at = time.time()
    environments = api.images(filters={"label": labels.ENVIRONMENT})
    checks = [
        Finding("connection", Outcome.OK, f"Docker {version['Version']} at {host.url}"),
        check_version(version),
        check_data_root(version),
        check_clock(info["SystemTime"], asked_at, answered_at),
        _count_environments(environments),
        check_gpus(info, host),
    ]
    findings = tuple(finding for finding in checks if finding is not None)
    facts = parse_facts(info, host)
    kernel = str(info.get("KernelVersion") or "")
    engine = " ".join(str(info.get(key) or "") for key in ("ID", "Name", "DockerRootDir"))  # copied disks share an ID
    return HostReport(findings, facts.managers, facts.leaderless, kernel, engine)


def check_version(version: dict[str, Any]) -> Finding | None:
    """Return a finding when the engine is too old, from the answer of `GET /version`."""
    if tuple(int(part) for part in version["ApiVersion"].split(".")) >= _OLDEST:
        return None
    return Finding("version", Outcome.FAILED, f"Docker {version['Version']} is too old: 20.10 is the oldest")


def check_data_root(version: dict[str, Any]) -> Finding | None:
    """Return a finding when users of the host reach the files of containers (CVE-2021-41091), setuid files too."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version["Version"])
    if match is None or tuple(map(int, match.groups())) >= _CLOSED_DATA_ROOT:
        return None
    message = (
        f"Docker {version['Version']} lets other users of the host reach the files of containers: use 20.10.9 or newer"
    )
    return Finding("isolation", Outcome.NOTE, message)


def check_clock(system_time: str, asked_at: float, answered_at: float) -> Finding:
    """Compare the engine's clock with this machine's.

    Args:
        system_time: the engine's time, RFC 3339, which it read between the question and its answer.
        asked_at, answered_at: the times of this machine, seconds since 1970.
    """
    engine_time = datetime.fromisoformat(system_time[:19] + "+00:00").timestamp()
    ahead = engine_time - answered_at
    behind = asked_at - engine_time - 1.0  # the text has whole seconds
    skew = max(0.0, ahead, behind)
    if skew < _SKEW:
        return Finding("clock", Outcome.OK, f"within {skew:.0f} s of this server's clock")
    outcome = Outcome.NOTE if skew <= _MOST_SKEW else Outcome.FAILED
    direction = "ahead of" if ahead > behind else "behind"
    message = (
        f"{skew:.0f} s {direction} this server's clock, so that the times of its jobs and lines are wrong by that"
        " much: set its clock (`timedatectl set-ntp true` there), or this server's if that is the wrong one"
    )
    return Finding("clock", outcome, message)


def check_gpus(info: dict[str, Any], host: HostSpec) -> Finding | None:
    """Return a finding when pool.yml gives the host GPUs that its engine cannot pass on."""
    if not host.gpus or offers_gpus(info):
        return None
    return Finding("gpus", Outcome.FAILED, "pool.yml gives it GPUs, but its engine has no nvidia runtime")


def _count_environments(images: list[dict[str, Any]]) -> Finding:
    size = sum(image["Size"] for image in images) / 2**30
    return Finding("images", Outcome.OK, f"holds {len(images)} environments ({size:.1f} GiB)")
