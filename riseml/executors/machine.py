"""This machine: what it can give, which ports are taken, and how its processes and GPUs are doing."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from riseml.control.placement.addresses import PORTS
from riseml.model import Capacity

_SLICES = 12
_MIB = 2**20
_UNLIMITED = 1 << 60  # bytes; cgroups write "no limit" as a number near 2**63
_MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_TIME_WAIT = "06"


def read_capacity(gpus: tuple[str, ...]) -> Capacity:
    """Cores and memory that this process may use."""
    return Capacity(float(len(os.sched_getaffinity(0))), total_memory() // _MIB, gpus)


def total_memory() -> int:
    """Bytes of memory, of the container if we are in one."""
    total = int(psutil.virtual_memory().total)
    for path in _MEMORY_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            limit = int(path.read_text())
            if limit < _UNLIMITED:
                total = min(total, limit)
    return total


def busy_ports(server: str) -> frozenset[int]:
    """Ports of the range for jobs that are in use, or that are left to other servers.

    A job listens some seconds after it got its port, and until then nobody sees that it is taken. Within one server the
    records prevent that a port is given twice; two servers on one machine begin in different parts of the range.
    """
    width = len(PORTS) // _SLICES
    first = PORTS.start + width * (int(hashlib.sha256(server.encode()).hexdigest(), 16) % _SLICES)
    own = frozenset(range(first, first + width))
    return frozenset(PORTS) - (own - frozenset(_used_ports()))


def list_subnets() -> tuple[str, ...]:
    """The IPv4 subnets that this machine has a route to, from the kernel's table (hexadecimal, least byte first).

    An engine knows its own networks only: two engines on one machine, or an engine beside a VPN, would take the same.
    """
    found: list[str] = []
    with contextlib.suppress(FileNotFoundError), open("/proc/net/route") as rows:
        next(rows, None)
        for row in rows:
            _, destination, _, _, _, _, _, mask, *_ = row.split()
            length = int(mask, 16).bit_count()
            if length:  # the default route leads everywhere
                address = ipaddress.IPv4Address(int(destination, 16).to_bytes(4, "little"))
                found.append(f"{address}/{length}")
    return tuple(found)


class Meter:
    """How much a changing group of processes uses, from one reading to the next."""

    def __init__(self) -> None:
        self._at = 0.0
        self._before: dict[psutil.Process, float] = {}

    def read(self, group: Iterable[psutil.Process]) -> tuple[float, int] | None:
        """Percent of one core since the last reading, and bytes of memory now; None the first time."""
        now = time.monotonic()
        before, elapsed = self._before, now - self._at
        self._before, memory = {}, 0
        for process in group:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                self._before[process] = times.user + times.system
                memory += memory_of(process)
        first, self._at = not self._at, now
        if first or elapsed <= 0:
            return None
        used = sum(seconds - before.get(process, 0.0) for process, seconds in self._before.items())
        return max(0.0, used / elapsed * 100), memory


def memory_of(process: psutil.Process) -> int:
    """Bytes of memory of one process, its part of what it shares with others; 0 when it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{process.pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(psutil.Error):  # a kernel before 4.14, or it is gone
        return int(process.memory_info().rss)
    return 0


def _used_ports() -> Iterator[int]:
    """Local TCP ports that somebody holds, from the kernel's own tables: `sl local_address rem_address st ...`."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(FileNotFoundError), open(table) as rows:
            next(rows)
            for row in rows:
                _, local, _, state, *_ = row.split(maxsplit=4)
                if state != _TIME_WAIT:
                    yield int(local.rpartition(":")[2], 16)
