"""The networks of an engine, also while its Docker Swarm has no leader.

A manager then leaves the networks of the swarm out of its list without reporting an error (seen with Engine 20.10).
Without this module the server would close an experiment whose network seemed to be gone, and the network would come
back with the next leader and stay.

The list does not show what else has addresses of another machine: an interface, or a network of a second engine there.
Only the refusal of a network does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import docker

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.executors.docker.networks import NetworkSubnets, list_network_subnets, remove_networks
from riseml.executors.docker.stuck_networks import StuckNetworks

_NO_LEADER = "the swarm has no leader, so that the engine does not say which networks it has"
_TAKEN_FOR = 600.0  # seconds; what refused a subnet may be gone then
_HINT = "start the other managers of the swarm: more than half of them must reach each other"


class NetworkList:
    """The networks of one engine; those across hosts as of the last complete list.

    Args:
        server: id of this server.
        host: the host of the engine.
        clock: returns seconds that only grow.
    """

    def __init__(self, server: str, host: HostName, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._host = host
        self._clock = clock
        self._lock = threading.Lock()
        self._taken: dict[str, float] = {}  # subnet that the host has refused -> until when it counts as taken
        self.last: NetworkSubnets | None = None  # what was read last; None: nothing yet
        self._across: dict[int, str] = {}  # subnets of the networks across hosts that this host created, by experiment

    def read(self, api: docker.APIClient, written_off: frozenset[str]) -> NetworkSubnets:
        """Return the subnets; without a leader, those of the swarm's networks come from the last complete list."""
        self.last = self._read_now(api, written_off)
        return self.last

    def note_taken(self, subnet: str) -> None:
        """Remember that the host has refused a subnet, so that the next network gets another one."""
        with self._lock:
            self._taken[subnet] = self._clock() + _TAKEN_FOR

    def list_taken(self) -> tuple[str, ...]:
        """Return the subnets that the host has refused in the last ten minutes."""
        with self._lock:
            moment = self._clock()
            self._taken = {subnet: until for subnet, until in self._taken.items() if until > moment}
            return tuple(self._taken)

    def _read_now(self, api: docker.APIClient, written_off: frozenset[str]) -> NetworkSubnets:
        subnets = list_network_subnets(api, self._server, self._host, written_off)
        if self._across.keys() - subnets.own.keys():
            if _lacks_leader(api):
                return replace(subnets, own={**self._across, **subnets.own})
            subnets = list_network_subnets(api, self._server, self._host, written_off)  # the leader may be a new one
        self._across = {experiment: subnets.own[experiment] for experiment in subnets.across}
        return subnets

    def remove(self, api: docker.APIClient, experiment: int, stuck: StuckNetworks) -> None:
        """Remove the experiment's networks, except those that were written off.

        Raises:
            EngineError: the engine counts an endpoint in one, or the swarm has no leader.
        """
        if experiment in self._across and _lacks_leader(api):
            raise EngineError(_NO_LEADER, _HINT)
        remove_networks(api, self._server, experiment, stuck)


def _lacks_leader(api: docker.APIClient) -> bool:
    """Return True for a manager that cannot ask its swarm (Docker Engine API 1.41, `SystemInfo.Swarm`)."""
    swarm: dict[str, Any] = api.info().get("Swarm") or {}
    return bool(swarm.get("ControlAvailable")) and bool(swarm.get("Error"))
