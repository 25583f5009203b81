"""The checks of `riseml pool check` for one engine and its host."""

from __future__ import annotations

import io
import re
import tarfile
import time
from dataclasses import replace
from datetime import datetime
from typing import Any

import docker
from docker.errors import NotFound

from riseml.base.names import SUBNETS
from riseml.base.records import dataclass
from riseml.executors.capabilities import Finding, HostReport, Outcome
from riseml.executors.docker import labels
from riseml.executors.docker.data_volumes import EngineData
from riseml.executors.docker.facts import parse_facts
from riseml.executors.docker.gpu_inventory import GpuInventory
from riseml.executors.docker.gpu_probe import offers_gpus
from riseml.executors.docker.helper_container import lend_container, read_small_file, send_archive
from riseml.executors.docker.helpers import Helpers
from riseml.executors.docker.networks import StuckNetworks, describe_stuck
from riseml.executors.docker.output_parts import inspect_privacy
from riseml.executors.docker.reach_check import check_reach
from riseml.model import Mount
from riseml.spec.pool.types import HostSpec

_OLDEST = (1, 41)  # version of the Docker Engine API; Docker 20.10
# the first Docker that protects the files of containers from other users of the machine
_CLOSED_DATA_ROOT = (20, 10, 9)
_SKEW = 5.0  # seconds between two clocks that make logs hard to read together
_MOST_SKEW = 30.0  # seconds from which on a host does not fit: graces and limits of time are wrong by that much


@dataclass(frozen=True, slots=True)
class EngineCheck:
    """The checks of one engine and its host; an implementation of `HostCheck`."""

    host: HostSpec
    helpers: Helpers
    gpus: GpuInventory
    stuck: StuckNetworks

    def check_host(self) -> HostReport:
        engine = self.helpers.engine
        with engine.api() as api:
            api.ping()
        with engine.api(patient=True) as api:  # a manager that is losing its leader takes 20 s to answer
            report = _inspect_host(api, self.host)
            reach = check_reach(api, self.helpers, SUBNETS)
            stuck = tuple(
                Finding("networks", Outcome.NOTE, describe_stuck(api, identity).message)
                for identity in sorted(self.stuck.written_off())
            )
        copies = EngineData(self.helpers).check()
        return replace(report, findings=(*report.findings, *reach, *self.gpus.check_gpus(), *stuck, *copies))

    def read_file(self, mount: Mount, name: str) -> bytes | None:
        """Return the content of a small file in a folder or volume of the host; None when it is missing or large."""
        with (
            self.helpers.engine.api(patient=True) as api,
            lend_container(api, self.helpers, f"read-{name}", (mount,)) as container,
        ):
            try:
                return read_small_file(api, container, f"{mount.target}/{name}")
            except NotFound:
                return None

    def write_file(self, mount: Mount, name: str, content: bytes) -> None:
        """Write a small file into a folder or volume of the host."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o600
            tar.addfile(entry, io.BytesIO(content))
        with (
            self.helpers.engine.api(patient=True) as api,
            lend_container(api, self.helpers, f"write-{name}", (mount,)) as container,
        ):
            send_archive(api, container, mount.target, buffer.getvalue())

    def check_privacy(self, mount: Mount, name: str) -> Finding | None:
        """Return a finding when other users of the host reach outputs; `write_file` has written the file `name`."""
        with (
            self.helpers.engine.api(patient=True) as api,
            lend_container(api, self.helpers, f"privacy-{name}", (mount,)) as container,
        ):
            return inspect_privacy(api, container, mount, name)


def inspect_requirements(api: docker.APIClient, host: HostSpec, *, has_gpus: bool) -> tuple[Finding, ...]:
    """Return what `riseml self check` says of an engine. It starts nothing there."""
    info = api.info()
    findings = [
        finding if finding.topic != "connection" else replace(finding, topic="engine")
        for finding in _inspect_host(api, host).findings
        if finding.topic != "images"
    ]
    if not has_gpus:
        return (*findings, Finding("toolkit", Outcome.OK, "not needed: the driver shows no NVIDIA GPU"))
    if offers_gpus(info):
        return (*findings, Finding("toolkit", Outcome.OK, "the engine passes GPUs on to containers"))
    message = (
        "the engine passes no GPU on: install nvidia-container-toolkit, then"
        " `nvidia-ctk runtime configure --runtime=docker` as root, and restart Docker"
    )
    return (*findings, Finding("toolkit", Outcome.FAILED, message))


def _inspect_host(api: docker.APIClient, host: HostSpec) -> HostReport:
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
