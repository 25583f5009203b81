"""One network an experiment, with an explicit small subnet: the engine's own pools would run out after some thirty.

The engine makes a second network of the same name without a word, so that everything here goes by label and id.
"""

from __future__ import annotations

import docker
from docker.errors import APIError, NotFound
from docker.types import IPAMConfig, IPAMPool

from riseml.executors.base import Share, SubnetTaken
from riseml.executors.docker import labels
from riseml.executors.docker.containers import network_name
from riseml.names import HostName
from riseml.states import Network


def list_subnets(api: docker.APIClient, server: str, host: HostName) -> tuple[dict[int, str], tuple[str, ...]]:
    """The subnets of our experiments, and those of everybody else.

    A network across hosts counts on the host that made it: every manager of the swarm lists it, and every host that has
    a container in it.
    """
    mine: dict[int, str] = {}
    foreign: list[str] = []
    for network in api.networks():
        subnets = [pool["Subnet"] for pool in (network["IPAM"].get("Config") or []) if ":" not in pool["Subnet"]]
        marks = network.get("Labels") or {}
        experiment = labels.parse_experiment(marks)
        if marks.get(labels.SERVER) == server and experiment is not None:
            if marks.get(labels.HOST, host) == host:
                mine[experiment] = subnets[0] if subnets else ""
        else:
            foreign += subnets
    return mine, tuple(foreign)


def create(api: docker.APIClient, server: str, host: HostName, share: Share) -> None:
    """Make the experiment's network; one that is there already is kept, a second one is removed.

    Raises:
        SubnetTaken: the subnet overlaps with another network of the host.
    """
    if not _ours(api, server, share.experiment):
        try:
            _create(api, server, host, share)
        except APIError as error:
            if "overlap" in str(error.explanation).lower():
                raise SubnetTaken(f"the subnet {share.subnet} is in use on the host", permanent=False) from error
            if error.status_code != 409:
                raise
    for extra in _ours(api, server, share.experiment)[1:]:
        api.remove_network(extra)


def _create(api: docker.APIClient, server: str, host: HostName, share: Share) -> None:
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


def remove(api: docker.APIClient, server: str, experiment: int) -> None:
    """Remove the experiment's networks; none is no error."""
    for network in _ours(api, server, experiment):
        try:
            api.remove_network(network)
        except NotFound:
            continue


def _ours(api: docker.APIClient, server: str, experiment: int) -> list[str]:
    """Ids of the experiment's networks, the oldest first."""
    wanted = [
        labels.label_filter(labels.SERVER, server),
        labels.label_filter(labels.EXPERIMENT, str(experiment)),
    ]
    found = api.networks(filters={"label": wanted})
    return [network["Id"] for network in sorted(found, key=lambda network: str(network["Created"]))]
