"""Subnets, addresses and ports for gangs.

riseml chooses each subnet itself: the default pools of an engine hold only about 30 networks, and a chosen subnet
collides with no other network.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from riseml.base.names import HostName
from riseml.base.states import Network
from riseml.control.observation import Observation
from riseml.model import Experiment, HostObservation

PORTS = range(20000, 32000)
"""Ports for jobs that share the addresses of a machine: below the range that Linux gives to outgoing connections."""

_BLOCK_BITS = 26
"""The prefix length of the smallest subnet: 64 addresses."""

_OWN_ADDRESSES = 3
"""The addresses of a subnet that no job gets: its own, its gateway, its broadcast address."""


class SubnetAllocator:
    """The free subnets of the range that experiments may use.

    Example:
        SubnetAllocator("10.213.0.0/16", ["10.213.0.0/26"]).take(4)   # "10.213.0.64/26"

    Args:
        within: the range, in CIDR notation.
        taken: subnets of any size that exist on any host, riseml's own and others; texts that are no IPv4 subnet are
            ignored.
    """

    def __init__(self, within: str, used: Iterable[str]) -> None:
        whole = ipaddress.ip_network(within)
        self._start = int(whole.network_address)
        fits = whole.version == 4 and whole.prefixlen <= _BLOCK_BITS
        self._blocks = 1 << max(0, _BLOCK_BITS - whole.prefixlen) if fits else 0
        self._used: set[int] = set()
        self._next: dict[int, int] = {}  # by the width of a subnet: the first block that may be free
        for text in used:
            self._mark_used(text)

    def take(self, addresses: int) -> str | None:
        """Take the first free subnet with this many addresses for jobs; None when no such subnet is free."""
        bits = max(32 - _BLOCK_BITS, (addresses + _OWN_ADDRESSES - 1).bit_length())
        width = 1 << (bits - (32 - _BLOCK_BITS))
        for block in range(self._next.get(width, 0), self._blocks - width + 1, width):
            blocks = range(block, block + width)
            if self._used.isdisjoint(blocks):
                self._used.update(blocks)
                self._next[width] = block + width
                return f"{ipaddress.IPv4Address(self._start + block * 64)}/{32 - bits}"
        self._next[width] = self._blocks
        return None

    def _mark_used(self, text: str) -> None:
        bounds = _parse_bounds(text)
        if bounds is None:
            return
        first, last = ((bound - self._start) >> 6 for bound in bounds)
        self._used.update(range(max(0, first), min(self._blocks - 1, last) + 1))


def _parse_bounds(text: str) -> tuple[int, int] | None:
    """Return the first and the last address of an IPv4 subnet; None for other texts.

    Parsed by hand, because one pass parses thousands and `ipaddress` takes ten times as long.
    """
    address, _, length = text.partition("/")
    parts = address.split(".")
    if len(parts) != 4 or not all(map(str.isdecimal, (*parts, length))) or int(length) > 32:
        return None
    a, b, c, d = map(int, parts)
    size = 1 << (32 - int(length))
    first = ((a << 24) | (b << 16) | (c << 8) | d) & ~(size - 1)
    return first, first + size - 1


def find_free_subnets(experiments: Iterable[Experiment], observation: Observation) -> SubnetAllocator:
    """Return the subnets that neither a record nor any host uses."""
    return SubnetAllocator(observation.subnets, _find_used_subnets(experiments, observation.hosts))


def _find_used_subnets(experiments: Iterable[Experiment], hosts: Mapping[HostName, HostObservation]) -> Iterator[str]:
    for experiment in experiments:
        if experiment.subnet:
            yield experiment.subnet
    for host in hosts.values():
        yield from host.foreign_subnets
        yield from host.networks.values()


def count_addresses(network: Network, jobs: int) -> int:
    """Return how many addresses the subnet of a gang must have: across hosts two for each job, which attempts take in
    turns, and one more on each host for the swarm.
    """
    return jobs * 3 if network is Network.OVERLAY else jobs


def choose_addresses(subnet: str, network: Network, jobs: int, attempt: int) -> list[str]:
    """Return the addresses of a gang's jobs.

    Across hosts the addresses come from the top of the subnet, because the swarm takes its own from the bottom. Each
    attempt gets other addresses than the last one: a lost host may still hold those that it had.
    """
    whole = ipaddress.ip_network(subnet)
    first = int(whole.network_address) + 2  # the gateway has the address before
    last = int(whole.broadcast_address) - 1
    if network is not Network.OVERLAY:
        return [str(ipaddress.ip_address(first + index)) for index in range(jobs)]
    usable = last - first + 1 - jobs  # the lowest addresses belong to the swarm
    begin = (attempt - 1) * jobs
    return [str(ipaddress.ip_address(last - (begin + index) % usable)) for index in range(jobs)]


class PortAllocator:
    """The free ports of every host."""

    def __init__(self, experiments: Iterable[Experiment], hosts: Mapping[HostName, HostObservation]) -> None:
        self._hosts = hosts
        self._used: dict[HostName, set[int]] = {}
        for experiment in experiments:
            for job in experiment.jobs:
                if job.port is not None and job.host is not None:
                    self._used.setdefault(job.host, set()).add(job.port)

    def take(self, host: HostName, count: int) -> list[int] | None:
        """Take this many ports of one host; None when the host has fewer free ports."""
        used = self._used.setdefault(host, set())
        busy = self._hosts[host].busy_ports
        ports = list(islice((port for port in PORTS if port not in used and port not in busy), count))
        if len(ports) < count:
            return None
        used.update(ports)
        return ports
