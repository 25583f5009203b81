"""This machine: its cores and memory, and the ports and subnets in use."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from riseml.control.placement.addresses import PORTS
from riseml.model import Capacity

_SLICES = 12  # parts of the port range; each server uses one
_MIB = 2**20
_UNLIMITED = 1 << 60  # bytes; cgroups write "no limit" as a number near 2**63
_MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_PORTS_AGE = 1.0  # seconds for which a reading of the ports in use counts
_TIME_WAIT = "06"  # state of a TCP port in /proc/net/tcp


def read_capacity(gpus: tuple[str, ...]) -> Capacity:
    """Return the cores and the memory that this process may use, with these GPUs."""
    return Capacity(float(len(os.sched_getaffinity(0))), read_total_memory() // _MIB, gpus)


def read_total_memory() -> int:
    """Return the memory of this machine in bytes, or of the container in which the server runs."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in _MEMORY_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            limit = int(path.read_text())
            if limit < _UNLIMITED:
                total = min(total, limit)
    return total


def find_busy_ports(server: str) -> frozenset[int]:
    """Return the ports of the range for jobs that this server must not give to a job.

    They are the ports in use, and those outside this server's part of the range. A job listens some seconds after it
    got its port. Within one server the records keep a port from being given twice; between two servers on one machine
    the parts do.

    Args:
        server: id of the server; it selects the part.
    """
    width = len(PORTS) // _SLICES
    first = PORTS.start + width * (int(hashlib.sha256(server.encode()).hexdigest(), 16) % _SLICES)
    own = frozenset(range(first, first + width))
    return frozenset(PORTS) - (own - frozenset(_list_used_ports()))


class PortReader:
    """Finds the busy ports, but reads the kernel's tables at most once a second: for each of the two tables the kernel
    goes through all slots for connections, which takes up to 5 ms.

    Args:
        server: as for `find_busy_ports`.
        clock: returns monotonic seconds.
    """

    def __init__(self, server: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._clock = clock
        self._reading: tuple[float, frozenset[int]] | None = None  # time of the reading in monotonic seconds; the ports

    def read_busy_ports(self) -> frozenset[int]:
        """Return the result of `find_busy_ports`, at most a second old."""
        now = self._clock()
        if self._reading is None or now - self._reading[0] > _PORTS_AGE:
            self._reading = now, find_busy_ports(self._server)
        return self._reading[1]


def list_routed_subnets() -> tuple[str, ...]:
    """Return the IPv4 subnets to which this machine has a route: `("10.213.0.0/26",)`.

    An engine knows only its own networks. Two engines on one machine, or an engine beside a VPN, would use the same
    subnet. The source is the kernel's table /proc/net/route: hexadecimal, least significant byte first.
    """
    return tuple(subnet for _, subnet in _list_routes())


def find_rival_interface(subnet: str, interface: str) -> str | None:
    """Return an interface that has a route to a part of the subnet of another one, `interface`.

    None: there is none, or this machine (or this container) does not have `interface`.
    """
    routes = list(_list_routes())
    if interface not in {name for name, _ in routes}:
        return None
    own = ipaddress.IPv4Network(subnet)
    return next(
        (name for name, other in routes if name != interface and own.overlaps(ipaddress.IPv4Network(other))), None
    )


def _list_routes() -> Iterator[tuple[str, str]]:
    """Yield the interface and the subnet of each route but the default one."""
    with contextlib.suppress(FileNotFoundError), open("/proc/net/route") as rows:
        next(rows, None)
        for row in rows:
            interface, destination, _, _, _, _, _, mask, *_ = row.split()
            length = int(mask, 16).bit_count()
            if length:  # 0 is the default route
                address = ipaddress.IPv4Address(int(destination, 16).to_bytes(4, "little"))
                yield interface, f"{address}/{length}"


def _list_used_ports() -> Iterator[int]:
    """Yield the local TCP ports in use, from the kernel's tables: `sl local_address rem_address st ...`."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(FileNotFoundError), open(table) as rows:
            next(rows)
            for row in rows:
                _, local, _, state, *_ = row.split(maxsplit=4)
                if state != _TIME_WAIT:
                    yield int(local.rpartition(":")[2], 16)
