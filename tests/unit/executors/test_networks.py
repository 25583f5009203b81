"""What the networks of an engine stand for."""

from __future__ import annotations

from typing import Any

import docker

from riseml.executors.docker import labels
from riseml.executors.docker.networks import NetworkSubnets, list_network_subnets
from riseml.names import HostName

SERVER = "5e17e4"


class Networks(docker.APIClient):
    """An engine that has these networks and answers nothing else."""

    def __init__(self, *found: dict[str, Any]) -> None:
        self.found = list(found)

    def networks(self, *_: object, **__: object) -> list[dict[str, Any]]:
        return self.found


def network(subnet: str, **labels: str) -> dict[str, Any]:
    return {"IPAM": {"Config": [{"Subnet": subnet}]}, "Labels": labels}


def test_a_network_of_this_server_that_names_no_experiment_is_foreign() -> None:
    ours = network("10.213.0.0/26", **{labels.SERVER: SERVER, labels.EXPERIMENT: "4"})
    odd = network("10.213.0.64/26", **{labels.SERVER: SERVER})
    other = network("10.213.0.128/26")
    found = list_network_subnets(Networks(ours, odd, other), SERVER, HostName("h1"))
    assert found == NetworkSubnets({4: "10.213.0.0/26"}, ("10.213.0.64/26", "10.213.0.128/26"))
