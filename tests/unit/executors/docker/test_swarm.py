"""Which answers of engines mean one swarm, or work of another server. Real engines join in tests/real/pool."""

from __future__ import annotations

from typing import Any

import pytest

from riseml.base.errors import Refused
from riseml.base.names import HostName
from riseml.executors.docker import labels
from riseml.executors.docker.swarm import SwarmManagement, check_one_swarm
from tests.unit.executors.docker.held_containers import OTHER, SERVER, HelperSite


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


@pytest.mark.parametrize(
    ("marks", "state", "age", "is_shared"),
    [
        ({labels.SERVER: OTHER, labels.JOB: "train"}, "running", 9999, True),
        ({labels.SERVER: OTHER, labels.JOB: "train"}, "paused", 9999, True),
        ({labels.SERVER: OTHER, labels.JOB: "train"}, "created", 1, True),  # about to start
        ({labels.BUILD_SERVER: OTHER}, "running", 9999, True),
        ({labels.SERVER: OTHER, labels.JOB: "train"}, "created", 9999, False),  # its server is gone
        ({labels.SERVER: OTHER, labels.JOB: "train"}, "exited", 1, False),
        ({labels.SERVER: OTHER, labels.HELPER: "disk"}, "running", 1, False),
        ({labels.SERVER: OTHER, labels.HELPER: "files", labels.BUILD_SERVER: ""}, "running", 1, False),
        ({labels.SERVER: SERVER, labels.JOB: "train", labels.BUILD_SERVER: ""}, "running", 1, False),
        ({labels.BUILD_SERVER: ""}, "running", 1, False),  # a user's own, of an image that riseml made
    ],
)
def test_another_server_works_on_a_host_where_its_jobs_or_builds_run(
    place: HelperSite,
    monkeypatch: pytest.MonkeyPatch,
    marks: dict[str, str],
    state: str,
    age: float,
    *,
    is_shared: bool,
) -> None:
    monkeypatch.setattr("riseml.executors.docker.swarm.time.time", lambda: 20_000.0)
    place.api.add("one", marks, state, 20_000.0 - age)
    assert SwarmManagement([], SERVER, frozenset())._is_shared(place.helpers.engine) is is_shared
