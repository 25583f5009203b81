"""One network for each experiment, with an explicit small subnet: the engine's own pools end after about thirty.

The engine creates a second network of the same name without an error. So networks are found by label and id.
"""

from __future__ import annotations

from dataclasses import dataclass

import docker
from docker.errors import APIError, NotFound
from docker.types import IPAMConfig, IPAMPool

from riseml.executors.base import Share, SubnetTaken
from riseml.executors.docker import labels
from riseml.executors.docker.containers import network_name
from riseml.names import HostName
from riseml.states import Network

_CONFLICT = 409


@dataclass(frozen=True, slots=True)
class NetworkSubnets:
    """The IPv4 subnets of an engine's networks."""

    own: dict[int, str]  # by experiment of this server; empty text: its network has no IPv4 subnet
    foreign: tuple[str, ...]  # of all other networks


def list_network_subnets(api: docker.APIClient, server: str, host: HostName) -> NetworkSubnets:
    """Return the subnets of this server's experiments, and those of all other networks.

    A network across hosts counts on the host that created it, because every manager of the swarm lists it, and every
    host with a container in it.
    """
    own: dict[int, str] = {}
    foreign: list[str] = []
    for network in api.networks():
        subnets = [pool["Subnet"] for pool in (network["IPAM"].get("Config") or []) if ":" not in pool["Subnet"]]
        marks = network.get("Labels") or {}
        experiment = labels.parse_experiment(marks)
        if marks.get(labels.SERVER) == server and experiment is not None:
            if marks.get(labels.HOST, host) == host:
                own[experiment] = subnets[0] if subnets else ""
        else:
            foreign += subnets
    return NetworkSubnets(own, tuple(foreign))


def ensure_network(api: docker.APIClient, server: str, host: HostName, share: Share) -> None:
    """Create the experiment's network unless it exists; of two networks, keep the older one.

    Raises:
        SubnetTaken: the subnet overlaps with another network of the host.
    """
    if not _find_networks(api, server, share.experiment):
        try:
            _create_network(api, server, host, share)
        except APIError as error:
            if "overlap" in str(error.explanation).lower():
                raise SubnetTaken(f"the subnet {share.subnet} is in use on the host", permanent=False) from error
            if error.status_code != _CONFLICT:
                raise
    for extra in _find_networks(api, server, share.experiment)[1:]:
        api.remove_network(extra)


def remove_networks(api: docker.APIClient, server: str, experiment: int) -> None:
    """Remove the experiment's networks; does nothing when there are none."""
    for network in _find_networks(api, server, experiment):
        try:
            api.remove_network(network)
        except NotFound:
            continue


def _create_network(api: docker.APIClient, server: str, host: HostName, share: Share) -> None:
    marks = {labels.SERVER: server, labels.EXPERIMENT: str(share.experiment)}
    across = share.network is Network.OVERLAY
    api.create_network(
        network_name(server, share.experiment),
        driver="overlay" if across else "bridge",
        attachable=True if across else None,
        ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=share.subnet)] if share.subnet else []),
        check_duplicate=True,
        labels={**marks, labels.HOST: host} if across else marks,
    )


def _find_networks(api: docker.APIClient, server: str, experiment: int) -> list[str]:
    """Return the ids of the experiment's networks, the oldest first."""
    wanted = [
        labels.label_filter(labels.SERVER, server),
        labels.label_filter(labels.EXPERIMENT, str(experiment)),
    ]
    found = api.networks(filters={"label": wanted})
    return [network["Id"] for network in sorted(found, key=lambda network: str(network["Created"]))]
