"""The networks of experiments on an engine: made, listed, and removed as far as the engine can.

Each experiment has a network with an explicit small subnet: the engine's own pools hold only about thirty. The engine
creates a second network of the same name without an error. So networks are found by label and id.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import docker
from docker.errors import APIError, NotFound
from docker.types import IPAMConfig, IPAMPool

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.states import Network
from riseml.executors.base import HostSetup, SubnetTaken
from riseml.executors.docker import labels
from riseml.executors.docker.containers import network_name
from riseml.executors.this_machine.machine import find_rival_interface

WRITE_OFF_AFTER = 60.0  # seconds after the first refusal
_FORBIDDEN = 403
_CONFLICT = 409
_ENDPOINT_WORDS = "active endpoints"
_TASK_WORDS = "is in use by task"  # Swarm's; engines differ in the status that they give to it
_NO_LEADER = "the swarm has no leader, so that the engine does not say which networks it has"
_NO_LEADER_HINT = "start the other managers of the swarm: more than half of them must reach each other"
_SUBNET_TAKEN_FOR = 600.0  # seconds; what refused a subnet may be gone then

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NetworkSubnets:
    """The IPv4 subnets of an engine's networks."""

    own: dict[int, str]  # by experiment of this server; empty text: its network has no IPv4 subnet
    foreign: tuple[str, ...]  # subnets of all other networks
    across: frozenset[int] = frozenset()  # those of `own` whose network belongs to a swarm


class NetworkList:
    """The networks of one engine, also while its Docker Swarm has no leader.

    A manager without a leader leaves the networks of the swarm out of its list, and reports no error (seen with Engine
    20.10). The server would then close an experiment whose network seemed to be gone, and the network would come back
    with the next leader and stay. So this class keeps the networks across hosts as of the last complete list.

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
        """Remember that the host has refused a subnet, so that the next network gets another one.

        The list of networks does not show what else has addresses of another machine: an interface, or a network of a
        second engine there. Only the refusal of a network does.
        """
        with self._lock:
            self._taken[subnet] = self._clock() + _SUBNET_TAKEN_FOR

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
            raise EngineError(_NO_LEADER, _NO_LEADER_HINT)
        remove_networks(api, self._server, experiment, stuck)


class StuckNetworks:
    """The networks of one engine that it refused to remove, by their ids, with the time of the first refusal.

    Engine 20.10 sometimes counts an endpoint of a container that is gone: it answers `403 ... has active endpoints` for
    a network without a container, until the engine restarts. The same answer comes while a container that riseml did
    not make is connected. Swarm keeps the task of a connection that timed out, and then answers `... is in use by
    task ...` for a network across hosts. Such a network must not keep an experiment open: after `WRITE_OFF_AFTER` it
    counts as foreign. Its subnet stays taken, `riseml system clean` and `riseml pool check` name it, and riseml removes
    it when the engine is back.

    Args:
        clock: returns seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refused: dict[str, float] = {}  # network id -> time of the first refusal

    def note_refusal(self, identity: str) -> None:
        """Remember when the engine refused first."""
        self._refused.setdefault(identity, self._clock())

    def note_removal(self, identity: str) -> None:
        """Forget a network that is gone."""
        self._refused.pop(identity, None)

    def written_off(self) -> frozenset[str]:
        """Return the ids of the networks that no experiment waits for any more."""
        refused = list(self._refused.items())
        return frozenset(identity for identity, since in refused if self._clock() - since >= WRITE_OFF_AFTER)


def list_network_subnets(
    api: docker.APIClient, server: str, host: HostName, written_off: frozenset[str] = frozenset()
) -> NetworkSubnets:
    """Return the subnets of this server's experiments, and those of all other networks.

    A network across hosts counts on the host that created it, because every manager of the swarm lists it, and every
    host with a container in it. A network that was written off counts as foreign.
    """
    own: dict[int, str] = {}
    foreign: list[str] = []
    across: set[int] = set()
    for network in api.networks():
        subnets = [pool["Subnet"] for pool in (network["IPAM"].get("Config") or []) if ":" not in pool["Subnet"]]
        marks = network.get("Labels") or {}
        experiment = labels.parse_experiment(marks)
        if experiment is None or marks.get(labels.SERVER) != server or network.get("Id") in written_off:
            foreign += subnets
        elif marks.get(labels.HOST, host) == host:
            own[experiment] = subnets[0] if subnets else ""
            if network.get("Scope") == "swarm":
                across.add(experiment)
    return NetworkSubnets(own, tuple(foreign), frozenset(across))


def ensure_network(
    api: docker.APIClient, server: str, host: HostName, share: HostSetup, written_off: frozenset[str] = frozenset()
) -> None:
    """Create the experiment's network unless it exists; of two networks, keep the older one.

    Raises:
        SubnetTaken: the subnet overlaps with another network of the host.
    """
    if not find_networks(api, server, share.experiment, written_off):
        try:
            identity = _create_network(api, server, host, share, number=len(written_off))
            _check_rivals(api, identity, share)
        except APIError as error:
            if "overlap" in str(error.explanation).lower():
                raise SubnetTaken(f"the subnet {share.subnet} is in use on the host", permanent=False) from error
            if error.status_code != _CONFLICT:
                raise
    for extra in find_networks(api, server, share.experiment, written_off)[1:]:
        api.remove_network(extra)


def remove_networks(api: docker.APIClient, server: str, experiment: int, stuck: StuckNetworks) -> None:
    """Remove the experiment's networks, except those that were written off.

    Raises:
        EngineError: the engine counts an endpoint in one; `stuck` has noted it.
    """
    for identity in find_networks(api, server, experiment, stuck.written_off()):
        remove_network(api, identity, stuck)


def remove_written_off(api: docker.APIClient, stuck: StuckNetworks) -> None:
    """Try again to remove the networks that were written off; keep those that the engine still refuses to remove."""
    for identity in stuck.written_off():
        try:
            remove_network(api, identity, stuck)
        except EngineError as error:
            log.info("still there: %s", error.message)


def remove_network(api: docker.APIClient, identity: str, stuck: StuckNetworks) -> None:
    """Remove one network; does nothing when it does not exist.

    Raises:
        EngineError: the engine counts an endpoint in it; `stuck` has noted it.
    """
    try:
        api.remove_network(identity)
    except NotFound:
        stuck.note_removal(identity)
    except APIError as error:
        if not is_stuck(error):
            raise
        stuck.note_refusal(identity)
        raise describe_stuck(api, identity) from error
    else:
        stuck.note_removal(identity)


def find_networks(
    api: docker.APIClient, server: str, experiment: int, without: frozenset[str] = frozenset()
) -> list[str]:
    """Return the ids of the experiment's networks, without those in `without`, the oldest first."""
    label_filters = [
        labels.label_filter(labels.SERVER, server),
        labels.label_filter(labels.EXPERIMENT, str(experiment)),
    ]
    networks = sorted(api.networks(filters={"label": label_filters}), key=lambda network: str(network["Created"]))
    return [str(network["Id"]) for network in networks if network["Id"] not in without]


def describe_stuck(api: docker.APIClient, identity: str) -> EngineError:
    """Return why the engine refuses to remove this network, and what clears it."""
    network = api.inspect_network(identity)
    containers = network.get("Containers") or {}
    return explain_stuck(network["Name"], [str(container["Name"]) for container in containers.values()])


def explain_stuck(name: str, containers: Collection[str]) -> EngineError:
    """Return the error that says why a network cannot be removed and what clears it.

    Args:
        name: the name of the network.
        containers: names of the containers that are connected to it.
    """
    if containers:
        names = ", ".join(sorted(containers))
        return EngineError(
            f"the network {name} is in use by {names}: `docker network disconnect` clears it", permanent=False
        )
    return EngineError(
        f"the engine counts an endpoint of a container that is gone in the network {name}: a restart of the engine"
        " clears it",
        permanent=False,
    )


def is_stuck(error: APIError) -> bool:
    """Return True when the engine refused to remove a network because it counts an endpoint or a task in it."""
    words = str(error.explanation)
    return _TASK_WORDS in words or (error.status_code == _FORBIDDEN and _ENDPOINT_WORDS in words)


def _create_network(api: docker.APIClient, server: str, host: HostName, share: HostSetup, number: int) -> str:
    """Create the network, and return its id.

    Args:
        number: distinguishes it from networks of this host that were written off and keep their names.
    """
    marks = {labels.SERVER: server, labels.EXPERIMENT: str(share.experiment)}
    across = share.network is Network.OVERLAY
    name = network_name(server, share.experiment, share.subnet if across else None)
    created = api.create_network(
        f"{name}-{number}" if number and not across else name,
        driver="overlay" if across else "bridge",
        options={"encrypted": ""} if across and share.encrypted else None,
        attachable=True if across else None,
        ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=share.subnet)] if share.subnet else []),
        check_duplicate=True,
        labels={**marks, labels.HOST: host} if across else marks,
    )
    return str(created["Id"])


def _check_rivals(api: docker.APIClient, identity: str, share: HostSetup) -> None:
    """Remove a new network when another interface of this machine has its subnet, too.

    Engines of one machine do not know each other's networks, and two servers may choose a subnet at the same moment.
    Linux would translate the addresses of jobs, and cut their connections when one of the two networks is removed.

    Raises:
        SubnetTaken: another interface has it.
    """
    if share.subnet is None or share.network is Network.OVERLAY:
        return
    rival = find_rival_interface(share.subnet, f"br-{identity[:12]}")  # Docker's name for a bridge
    if rival is not None:
        api.remove_network(identity)
        raise SubnetTaken(f"the subnet {share.subnet} is in use on the host, by {rival}", permanent=False)


def _lacks_leader(api: docker.APIClient) -> bool:
    """Return True for a manager that cannot ask its swarm (Docker Engine API 1.41, `SystemInfo.Swarm`)."""
    swarm: dict[str, Any] = api.info().get("Swarm") or {}
    return bool(swarm.get("ControlAvailable")) and bool(swarm.get("Error"))
