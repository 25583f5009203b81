"""Which answers of engines mean one swarm. Real engines join in tests/real/pool."""

from __future__ import annotations

from typing import Any

import pytest

from riseml.base.errors import Refused
from riseml.base.names import HostName
from riseml.executors.docker.swarm import check_one_swarm


def _manager(cluster: str | None, *known: str) -> dict[str, Any]:
    info: dict[str, Any] = {"ControlAvailable": True, **_worker(*known)}
    return info if cluster is None else {**info, "Cluster": {"ID": cluster}}


def _worker(*known: str) -> dict[str, Any]:
    return {"LocalNodeState": "active", "RemoteManagers": [{"NodeID": node} for node in known]}


ONE_SWARM = {
    "three managers": (_manager("c1", "n1", "n2", "n3"), _manager("c1", "n1", "n2", "n3"), _manager("c1", "n1", "n3")),
    "a manager and two workers": (_manager("c1", "n1"), _worker("n1"), _worker("n1")),
    "a manager that has just joined does not know its swarm": (_manager("c1", "n1"), _manager(None, "n1")),
    "one manager that lost the majority": (_manager(None, "n1", "n2"), _worker("n2")),
}
SEVERAL_SWARMS = {
    "two managers of two swarms": (_manager("c1", "n1"), _manager("c2", "n2")),
    "a worker of another swarm": (_manager("c1", "n1"), _worker("n9")),
    "a manager of another swarm that does not know its id": (_manager("c1", "n1"), _manager(None, "n9")),
    "no manager": (_worker("n1"), _worker("n1")),
}


@pytest.mark.parametrize("infos", ONE_SWARM.values(), ids=ONE_SWARM)
def test_hosts_of_one_swarm_pass(infos: tuple[dict[str, Any], ...]) -> None:
    _check(infos)


@pytest.mark.parametrize("infos", SEVERAL_SWARMS.values(), ids=SEVERAL_SWARMS)
def test_hosts_of_several_swarms_are_refused(infos: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(Refused, match="swarm"):
        _check(infos)


def _check(infos: tuple[dict[str, Any], ...]) -> None:
    named = {HostName(f"h{number}"): info for number, info in enumerate(infos, 1)}
    check_one_swarm(named, [*named], [name for name, info in named.items() if info.get("ControlAvailable")])
