"""What the networks of an engine stand for, and those that the engine refuses to remove: when one is written off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import docker
import pytest
import requests
from docker.errors import APIError

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.executors.docker import labels
from riseml.executors.docker.networks import (
    WRITE_OFF_AFTER,
    NetworkList,
    NetworkSubnets,
    StuckNetworks,
    explain_stuck,
    is_stuck,
    list_network_subnets,
)

SERVER = "5e17e4"


class Networks(docker.APIClient):
    """An engine that has these networks and answers nothing else; a manager whose swarm may lose its leader."""

    def __init__(self, *found: dict[str, Any]) -> None:
        self.found = list(found)
        self.trouble = ""

    def networks(self, *_: object, **__: object) -> list[dict[str, Any]]:
        return [one for one in self.found if not self.trouble or one.get("Scope") != "swarm"]

    def info(self) -> dict[str, Any]:
        return {"Swarm": {"ControlAvailable": True, "Error": self.trouble}}


def network(subnet: str, **labels: str) -> dict[str, Any]:
    return {"IPAM": {"Config": [{"Subnet": subnet}]}, "Labels": labels}


def test_a_network_of_this_server_that_names_no_experiment_is_foreign() -> None:
    ours = network("10.213.0.0/26", **{labels.SERVER: SERVER, labels.EXPERIMENT: "4"})
    odd = network("10.213.0.64/26", **{labels.SERVER: SERVER})
    other = network("10.213.0.128/26")
    found = list_network_subnets(Networks(ours, odd, other), SERVER, HostName("h1"))
    assert found == NetworkSubnets({4: "10.213.0.0/26"}, ("10.213.0.64/26", "10.213.0.128/26"))


def test_a_network_of_a_swarm_without_a_leader_is_there_until_a_leader_says_otherwise() -> None:
    marks = {labels.SERVER: SERVER, labels.EXPERIMENT: "4", labels.HOST: "h1"}
    api = Networks(network("10.213.0.0/26", **marks) | {"Scope": "swarm"}, network("10.213.0.64/26"))
    known, nothing = NetworkList(SERVER, HostName("h1")), frozenset[str]()
    before = known.read(api, nothing)
    assert before == NetworkSubnets({4: "10.213.0.0/26"}, ("10.213.0.64/26",), frozenset({4}))
    api.trouble = "rpc error: code = Unknown desc = The swarm does not have a leader."
    for _ in range(2):
        assert known.read(api, nothing) == replace(before, across=frozenset())
    with pytest.raises(EngineError, match="the swarm has no leader"):
        known.remove(api, 4, StuckNetworks())
    api.trouble = ""
    assert known.read(api, nothing) == before
    api.found.clear()
    assert known.read(api, nothing) == NetworkSubnets({}, ())
    known.remove(api, 4, StuckNetworks())


def test_a_subnet_that_a_host_has_refused_counts_as_taken_for_ten_minutes() -> None:
    seconds = [0.0]
    networks = NetworkList(SERVER, HostName("h1"), lambda: seconds[0])
    networks.note_taken("10.213.0.0/26")
    seconds[0] = 300.0
    networks.note_taken("10.213.0.64/26")
    assert networks.list_taken() == ("10.213.0.0/26", "10.213.0.64/26")
    seconds[0] = 601.0
    assert networks.list_taken() == ("10.213.0.64/26",)


def refusal(status: int, words: str) -> APIError:
    answer = requests.Response()
    answer.status_code = status
    return APIError("refused", answer, words)


@pytest.mark.parametrize(
    ("error", "stuck"),
    [
        (refusal(403, "error while removing network: network riseml-1 id 5 has active endpoints"), True),
        (refusal(403, "operation not permitted on predefined bridge network"), False),
        (refusal(500, "has active endpoints"), False),
        (refusal(400, "rpc error: code = FailedPrecondition desc = network 5 is in use by task 7"), True),
        (refusal(400, "rpc error: code = FailedPrecondition desc = network 5 is in use by service 7"), False),
    ],
)
def test_only_a_counted_endpoint_or_task_makes_a_network_stuck(error: APIError, *, stuck: bool) -> None:
    assert is_stuck(error) == stuck


def test_a_network_is_written_off_a_minute_after_the_first_refusal() -> None:
    seconds = [100.0]
    stuck = StuckNetworks(lambda: seconds[0])
    stuck.note_refusal("5")
    seconds[0] += WRITE_OFF_AFTER - 1
    stuck.note_refusal("5")
    assert not stuck.written_off()
    seconds[0] += 1
    assert stuck.written_off() == {"5"}
    stuck.note_removal("5")
    assert not stuck.written_off()


def test_the_error_says_what_clears_it() -> None:
    assert "in use by shell, web: `docker network disconnect` clears it" in explain_stuck("n", ["web", "shell"]).message
    assert "a container that is gone" in explain_stuck("n", []).message
    assert "a restart of the engine clears it" in explain_stuck("n", []).message
