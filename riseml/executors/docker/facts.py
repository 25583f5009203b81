"""The facts that an engine reports about its machine: its size, and the Docker Swarm that it belongs to."""

from __future__ import annotations

import time
from typing import Any

import docker

from riseml.base.records import dataclass
from riseml.model import Capacity
from riseml.spec.pool.types import HostSpec

_KEPT = 512  # MiB of the machine's memory that no job gets: the server and the engine use it
_KEPT_SHARE = 20  # or this fraction (1/n) of the memory, if that is more
FRESH = 15.0
"""Seconds for which an answer is valid: a machine rarely changes, and the engine takes long to answer."""

STILL_FRESH = 60.0
"""The same while a job starts, which would wait for the answer. Passes without a start ask at least every 30 s."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The facts that an engine reports about its machine."""

    capacity: Capacity  # without the part that pool.yml holds back
    most_mem: int  # MiB that one job without its own limit may use
    version: str = ""  # version of the engine: `20.10.24`
    address: str = ""  # the address at which the other members of the swarm reach it
    managers: frozenset[str] = frozenset()  # ids of the managers of its swarm; empty: it is in none
    manager: bool = False  # it may create networks across the hosts of the swarm
    leaderless: bool = False  # a manager that cannot ask its swarm now


class FactsReader:
    """Reads the facts of one host again when they are too old."""

    def __init__(self, host: HostSpec) -> None:
        self.last: EngineFacts | None = None  # None: never read
        self.info: dict[str, Any] = {}  # the engine's last answer; empty: none yet
        self._host = host
        self._read_at: float | None = None  # monotonic seconds; None: read them again

    def forget(self) -> None:
        """Read the facts again the next time. Until then the last ones stay known."""
        self._read_at = None

    def read_fresh(self, api: docker.APIClient, oldest: float = FRESH) -> EngineFacts:
        """Return facts that are at most `oldest` seconds old."""
        if self.last is None or self._read_at is None or time.monotonic() - self._read_at > oldest:
            self.info = api.info()
            self.last = parse_facts(self.info, self._host)
            self._read_at = time.monotonic()
        return self.last


def parse_facts(info: dict[str, Any], host: HostSpec) -> EngineFacts:
    """Return the facts in the answer of `GET /info` (Docker Engine API 1.41).

    Only managers know the id of their swarm. All its members know managers of it, also some that have gone, so that
    hosts which know a manager in common are in one swarm.

    Args:
        info: the answer.
        host: the host in pool.yml, which may hold back cores and memory.
    """
    cpus = float(info["NCPU"])
    mem = int(info["MemTotal"]) // 2**20
    version = str(info.get("ServerVersion") or "")
    capacity = Capacity(min(cpus, host.cpus or cpus), min(mem, host.mem or mem), host.gpus or ())
    most = max(1, min(capacity.mem, mem - max(_KEPT, mem // _KEPT_SHARE)))
    swarm = info.get("Swarm") or {}
    if swarm.get("LocalNodeState") != "active":
        return EngineFacts(capacity, most, version)
    managers = frozenset(str(manager["NodeID"]) for manager in swarm.get("RemoteManagers") or [])
    address = str(swarm.get("NodeAddr") or "")
    manages = bool(swarm.get("ControlAvailable"))
    return EngineFacts(capacity, most, version, address, managers, manages, manages and bool(swarm.get("Error")))
