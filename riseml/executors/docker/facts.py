"""What an engine says of its machine: how much it holds, and which swarm it belongs to."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import docker

from riseml.model import Capacity
from riseml.spec.pool.types import HostSpec

_KEPT = 512  # MiB of the machine's memory that no job gets: the server and the engine live in it
_KEPT_SHARE = 20  # or one part in so many, if that is more
_FRESH = 15.0  # seconds; a machine rarely changes, and the engine takes its time for this answer


@dataclass(frozen=True, slots=True)
class Facts:
    """`swarm` identifies the swarm (empty: none), `manager` says whether this engine may make its networks. `most_mem`
    is how much memory (MiB) one job may use that has no limit of its own.
    """

    capacity: Capacity
    most_mem: int
    version: str = ""
    address: str = ""
    swarm: str = ""
    manager: bool = False


class FactsReader:
    """Reads the facts of one host now and then."""

    def __init__(self, host: HostSpec) -> None:
        self.last: Facts | None = None
        self._host = host
        self._read_at = 0.0

    def read(self, api: docker.APIClient) -> Facts:
        """The facts, not older than some seconds."""
        if self.last is None or time.monotonic() - self._read_at > _FRESH:
            self.last, self._read_at = read_facts(api.info(), self._host), time.monotonic()
        return self.last


def read_facts(info: dict[str, Any], host: HostSpec) -> Facts:
    """The facts in the answer of `GET /info` (Docker Engine API 1.41), with what the pool holds back taken off.

    Only managers know the id of their swarm. What all its members know is who the managers are, so that the least of
    the managers' ids stands for the swarm.
    """
    cpus, mem = float(info["NCPU"]), int(info["MemTotal"]) // 2**20
    version = str(info.get("ServerVersion") or "")
    capacity = Capacity(min(cpus, host.cpus or cpus), min(mem, host.mem or mem), host.gpus)
    most = max(1, min(capacity.mem, mem - max(_KEPT, mem // _KEPT_SHARE)))
    swarm = info.get("Swarm") or {}
    if swarm.get("LocalNodeState") != "active":
        return Facts(capacity, most, version)
    managers = [manager["NodeID"] for manager in swarm.get("RemoteManagers") or []]
    address = str(swarm.get("NodeAddr") or "")
    return Facts(capacity, most, version, address, min(managers, default=""), bool(swarm.get("ControlAvailable")))
