"""One network for each experiment, with an explicit small subnet: the engine's own pools hold only about thirty.

The engine creates a second network of the same name without an error. So networks are found by label and id.
"""

from __future__ import annotations

import logging

import docker
from docker.errors import APIError, NotFound
from docker.types import IPAMConfig, IPAMPool

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.states import Network
from riseml.executors.base import Share, SubnetTaken
from riseml.executors.docker import labels
from riseml.executors.docker.containers import network_name
from riseml.executors.docker.stuck_networks import StuckNetworks, explain_stuck, is_stuck
from riseml.executors.this_machine.machine import find_rival_interface

_CONFLICT = 409

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NetworkSubnets:
    """The IPv4 subnets of an engine's networks."""

    own: dict[int, str]  # by experiment of this server; empty text: its network has no IPv4 subnet
    foreign: tuple[str, ...]  # subnets of all other networks
    across: frozenset[int] = frozenset()  # those of `own` whose network belongs to a swarm


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
    api: docker.APIClient, server: str, host: HostName, share: Share, written_off: frozenset[str] = frozenset()
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


def describe_stuck(api: docker.APIClient, identity: str) -> EngineError:
    """Return why the engine refuses to remove this network, and what clears it."""
    network = api.inspect_network(identity)
    containers = network.get("Containers") or {}
    return explain_stuck(network["Name"], [str(container["Name"]) for container in containers.values()])


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


def _create_network(api: docker.APIClient, server: str, host: HostName, share: Share, number: int) -> str:
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


def _check_rivals(api: docker.APIClient, identity: str, share: Share) -> None:
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
