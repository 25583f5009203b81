"""One network an experiment, with an explicit small subnet: the engine's own pools would run out after some thirty.

The engine makes a second network of the same name without a word, so that everything here goes by label and id.
"""

from __future__ import annotations

import docker
from docker.errors import APIError, NotFound
from docker.types import IPAMConfig, IPAMPool

from riseml.executors import connection
from riseml.executors.base import SubnetTaken
from riseml.executors.containers import network_name


def list_subnets(api: docker.APIClient, server: str) -> tuple[dict[int, str], tuple[str, ...]]:
    """The subnets of our experiments, and those of everybody else."""
    mine: dict[int, str] = {}
    foreign: list[str] = []
    for network in api.networks():
        subnets = [pool["Subnet"] for pool in (network["IPAM"].get("Config") or []) if ":" not in pool["Subnet"]]
        labels = network.get("Labels") or {}
        if labels.get(connection.SERVER) == server:
            mine[int(labels[connection.EXPERIMENT])] = subnets[0] if subnets else ""
        else:
            foreign += subnets
    return mine, tuple(foreign)


def create(api: docker.APIClient, server: str, experiment: int, subnet: str | None) -> None:
    """Make the experiment's network; one that is there already is kept, a second one is removed.

    Raises:
        SubnetTaken: the subnet overlaps with another network of the host.
    """
    if not _ours(api, server, experiment):
        pools = [IPAMPool(subnet=subnet)] if subnet else []
        try:
            api.create_network(
                network_name(server, experiment),
                driver="bridge",
                ipam=IPAMConfig(pool_configs=pools),
                check_duplicate=True,
                labels={connection.SERVER: server, connection.EXPERIMENT: str(experiment)},
            )
        except APIError as error:
            if "overlap" in str(error.explanation).lower():
                raise SubnetTaken(f"the subnet {subnet} is in use on the host", permanent=False) from error
            if error.status_code != 409:
                raise
    for extra in _ours(api, server, experiment)[1:]:
        api.remove_network(extra)


def remove(api: docker.APIClient, server: str, experiment: int) -> None:
    """Remove the experiment's networks; none is no error."""
    for network in _ours(api, server, experiment):
        try:
            api.remove_network(network)
        except NotFound:
            continue


def _ours(api: docker.APIClient, server: str, experiment: int) -> list[str]:
    """Ids of the experiment's networks, the oldest first."""
    labels = [
        connection.labelled(connection.SERVER, server),
        connection.labelled(connection.EXPERIMENT, str(experiment)),
    ]
    found = api.networks(filters={"label": labels})
    return [network["Id"] for network in sorted(found, key=lambda network: str(network["Created"]))]
