"""Subnets, addresses and ports: explicit, so that an engine's few default pools never run out and nothing collides."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from riseml.control.observation import Observation
from riseml.model import Experiment, HostSeen
from riseml.names import HostName
from riseml.states import Network

PORTS = range(20000, 32000)
"""What jobs that share a machine's addresses may listen on: below the range that the kernel hands out to clients."""

_BLOCK = 26
_RESERVED = 3  # of a subnet: itself, its gateway, its broadcast


class Subnets:
    """The subnets that are left of the range that experiments may use.

    Args:
        within: the range, in CIDR notation.
        taken: subnets of any size, of ours and of everybody else on any host; what is no IPv4 subnet is passed over.
    """

    def __init__(self, within: str, taken: Iterable[str]) -> None:
        whole = ipaddress.ip_network(within)
        self._start = int(whole.network_address)
        self._blocks = 1 << max(0, _BLOCK - whole.prefixlen) if whole.version == 4 and whole.prefixlen <= _BLOCK else 0
        self._taken: set[int] = set()
        self._next: dict[int, int] = {}
        for text in taken:
            self._mark(text)

    def take(self, addresses: int) -> str | None:
        """The first subnet with room for as many addresses beside its own three; None: all are taken."""
        bits = max(32 - _BLOCK, (addresses + _RESERVED - 1).bit_length())
        width = 1 << (bits - (32 - _BLOCK))
        for block in range(self._next.get(width, 0), self._blocks - width + 1, width):
            wanted = range(block, block + width)
            if self._taken.isdisjoint(wanted):
                self._taken.update(wanted)
                self._next[width] = block + width
                return f"{ipaddress.IPv4Address(self._start + block * 64)}/{32 - bits}"
        self._next[width] = self._blocks
        return None

    def _mark(self, text: str) -> None:
        bounds = _bounds(text)
        if bounds is None:
            return
        first, last = ((bound - self._start) >> 6 for bound in bounds)
        self._taken.update(range(max(0, first), min(self._blocks - 1, last) + 1))


def _bounds(text: str) -> tuple[int, int] | None:
    """The first and the last address of an IPv4 subnet. By hand: thousands of them are read in one pass."""
    address, _, length = text.partition("/")
    parts = address.split(".")
    if len(parts) != 4 or not length.isdecimal():
        return None
    a, b, c, d = map(int, parts)
    size = 1 << (32 - int(length))
    first = ((a << 24) | (b << 16) | (c << 8) | d) & ~(size - 1)
    return first, first + size - 1


def find_subnets(experiments: Iterable[Experiment], seen: Observation) -> Subnets:
    """What is left beside every record's subnet and everything that any host has."""
    return Subnets(seen.subnets, _taken(experiments, seen.hosts))


def _taken(experiments: Iterable[Experiment], hosts: Mapping[HostName, HostSeen]) -> Iterator[str]:
    for experiment in experiments:
        if experiment.subnet:
            yield experiment.subnet
    for host in hosts.values():
        yield from host.foreign_subnets
        yield from host.networks.values()


def room_needed(network: Network, jobs: int) -> int:
    """The addresses that a gang's subnet must have: across hosts the swarm takes one more on each of them."""
    return jobs * 2 if network is Network.OVERLAY else jobs


def addresses_in(subnet: str, network: Network, jobs: int, attempt: int) -> list[str]:
    """The addresses of a gang's jobs.

    Across hosts they are taken from the top, since the swarm takes its own from the bottom, and every attempt has
    others than the last one: a host that is lost may hold on to those that it had.
    """
    whole = ipaddress.ip_network(subnet)
    first = int(whole.network_address) + 2  # behind the gateway
    last = int(whole.broadcast_address) - 1
    if network is not Network.OVERLAY:
        return [str(ipaddress.ip_address(first + index)) for index in range(jobs)]
    usable = last - first + 1 - jobs  # what is below is the swarm's
    begin = (attempt - 1) * jobs
    return [str(ipaddress.ip_address(last - (begin + index) % usable)) for index in range(jobs)]


class Ports:
    """The ports that are left on each host."""

    def __init__(self, experiments: Iterable[Experiment], hosts: Mapping[HostName, HostSeen]) -> None:
        self._hosts = hosts
        self._taken: dict[HostName, set[int]] = {}
        for experiment in experiments:
            for job in experiment.jobs:
                if job.port is not None and job.host is not None:
                    self._taken.setdefault(job.host, set()).add(job.port)

    def take(self, host: HostName, count: int) -> list[int] | None:
        """As many ports of one host; None when it has not as many left."""
        taken = self._taken.setdefault(host, set())
        busy = self._hosts[host].busy_ports
        found = list(islice((port for port in PORTS if port not in taken and port not in busy), count))
        if len(found) < count:
            return None
        taken.update(found)
        return found
