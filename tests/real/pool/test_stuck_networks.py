"""A network across hosts that its engine cannot let go: the next attempt has another one, which every host finds."""

from __future__ import annotations

import uuid

import pytest

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.base.states import Network
from riseml.executors.base import HostSetup
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.docker.networks import WRITE_OFF_AFTER, remove_written_off
from riseml.executors.transports.engine_client import Engine
from riseml.model import Launch
from riseml.spec.pool.types import HostSpec
from tests.real.pool.conftest import PoolRig
from tests.real.pool.engines import EngineHost
from tests.support.launches import make_sleeping_launch
from tests.support.rig import BASE
from tests.support.waiting import DEADLINE, wait_for

SUBNETS = ("10.211.0.0/26", "10.211.0.64/26")


def make_executor(host: EngineHost, server: str) -> DockerExecutor:
    return DockerExecutor(HostSpec(HostName(host.name), host.socket), server, Engine(host.socket))


def make_launch(server: str, subnet: str, attempt: int) -> Launch:
    return make_sleeping_launch(server, attempt, subnet, 9, Network.OVERLAY)


def test_another_attempt_has_a_network_that_the_other_hosts_find(pool_rig: PoolRig) -> None:
    pool_rig.post("/v1/pool/join")
    server, seconds = uuid.uuid4().hex, [0.0]
    manager, other = (make_executor(host, server) for host in pool_rig.hosts[:2])
    manager._stuck._clock = lambda: seconds[0]
    inventory = manager.capabilities.inventory
    assert inventory is not None
    api = pool_rig.hosts[0].api

    def prepare(subnet: str) -> str:
        """Create the network of the experiment, and return its id."""
        before = {row["Id"] for row in api.networks()}
        manager.prepare(HostSetup(1, subnet, Network.OVERLAY, creates_network=True, encrypted=False))
        (made,) = {row["Id"] for row in api.networks()} - before
        return str(made)

    first = prepare(SUBNETS[0])
    stranger = api.create_container(BASE, ["sleep", "600"], host_config={"NetworkMode": first})["Id"]
    try:
        api.start(stranger)
        with pytest.raises(EngineError, match="is in use by"):
            manager.release(1)
        seconds[0] += WRITE_OFF_AFTER
        prepare(SUBNETS[1])
        launch = make_launch(server, SUBNETS[1], 2)
        provide_base(pool_rig)
        other.start(launch, None)
        assert other.observe(frozenset()).containers[launch.key].running
        other.remove(launch.key)
        manager.release(1)
    finally:
        api.remove_container(stranger, force=True)

    def is_clean() -> bool:
        remove_written_off(api, manager._stuck)
        return not [item for item in inventory.list_inventory(frozenset()) if item.server == server]

    wait_for("nothing is left", is_clean, DEADLINE)


def provide_base(rig: PoolRig) -> None:
    """Bring the image of the tests to the second host."""
    first, second = (host.api for host in rig.hosts[:2])
    if not second.images(BASE):
        second.load_image(first.get_image(BASE))
