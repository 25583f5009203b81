"""Networks and addresses that the engine holds: written off or waited for, named, and used again once they are free."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.executors.base import HostSetup, SubnetTaken
from riseml.executors.capabilities import Inventory
from riseml.executors.docker import labels
from riseml.executors.docker.containers import container_name, container_request
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.docker.networks import WRITE_OFF_AFTER, remove_written_off
from riseml.executors.transports.engine_client import Engine
from riseml.model import Launch
from riseml.spec.pool.types import HostSpec
from tests.support.launches import make_sleeping_launch
from tests.support.rig import BASE
from tests.support.waiting import DEADLINE

pytestmark = pytest.mark.every_engine

_PARTS = 64  # tests/real/pool/engines.py and tests/real/transports/servers.py have higher ones


class Held:
    """An executor with the network of one experiment, and a container of someone else in it."""

    def __init__(self, url: str, part: int) -> None:
        # RFC 2544: no network of a real machine has these
        self.subnets = (f"198.18.{part}.0/29", f"198.18.{part}.8/29")
        self.seconds = 0.0
        self.api = docker.APIClient(base_url=url, version="auto", timeout=DEADLINE)
        self.executor = DockerExecutor(HostSpec(HostName("here"), url), uuid.uuid4().hex, Engine(url))
        self.executor._stuck._clock = lambda: self.seconds
        self.executor.prepare(HostSetup(1, self.subnets[0]))
        (self.name,) = [item.name for item in self.inventory.list_inventory(frozenset()) if item.server == self.server]
        self.stranger = self.api.create_container(BASE, ["sleep", "600"], host_config={"NetworkMode": self.name})["Id"]
        self.api.start(self.stranger)

    @property
    def inventory(self) -> Inventory:
        assert self.executor.capabilities.inventory is not None
        return self.executor.capabilities.inventory

    @property
    def server(self) -> str:
        return self.executor._server

    def networks(self) -> dict[int, str]:
        return dict(self.executor.observe(frozenset()).networks)

    def count(self) -> int:
        """Return how many networks of this server the engine has."""
        return sum(item.server == self.server for item in self.inventory.list_inventory(frozenset()))

    def launch(self, attempt: int, address: int) -> Launch:
        """Return a job with an address of the network: its first one is 1, the gateway's."""
        return make_sleeping_launch(self.server, attempt, self.subnets[0], address)

    def close(self) -> None:
        self.api.remove_container(self.stranger, force=True)
        for row in self.api.containers(all=True, filters={"label": f"{labels.SERVER}={self.server}"}):
            self.api.remove_container(row["Id"], force=True)
        for item in self.inventory.list_inventory(frozenset()):
            if item.server == self.server:
                self.inventory.discard_item(item)
        self.api.close()


@pytest.fixture(scope="session")
def part() -> Iterator[int]:
    """A part of the addresses that no other process uses: the engines of this machine see each other's bridges."""
    folder = Path(tempfile.gettempdir()) / f"riseml-test-subnets-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for number in range(_PARTS):
        with (folder / str(number)).open("w") as claim:
            try:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield number
            return
    pytest.fail(f"other processes use all {_PARTS} parts: {folder}")


@pytest.fixture
def held(engine_url: str, part: int) -> Iterator[Held]:
    made = Held(engine_url, part)
    yield made
    made.close()


def test_a_network_that_cannot_be_removed_is_written_off_and_later_removed(held: Held) -> None:
    with pytest.raises(EngineError, match=r"is in use by .*disconnect` clears it"):
        held.executor.release(1)
    assert held.networks() == {1: held.subnets[0]}
    held.seconds += WRITE_OFF_AFTER
    assert held.networks() == {}
    assert held.subnets[0] in held.executor.observe(frozenset()).foreign_subnets
    held.executor.release(1)  # nothing is left to wait for
    check = held.executor.capabilities.check
    assert check is not None
    assert any(finding.topic == "networks" for finding in check.check_host().findings)

    held.executor.prepare(HostSetup(1, held.subnets[1]))  # another attempt on the same host
    assert held.networks() == {1: held.subnets[1]}
    held.executor.release(1)

    held.api.disconnect_container_from_network(held.stranger, held.name, force=True)
    remove_written_off(held.api, held.executor._stuck)  # as when the stream of events begins again
    assert held.count() == 0


def test_a_subnet_that_another_interface_of_this_machine_has_is_refused(held: Held) -> None:
    """Two servers may choose a subnet at the same moment; no engine knows the networks of another one."""
    interface = f"rival{os.getpid() % 100_000}"
    subprocess.run(["ip", "link", "add", interface, "type", "bridge"], check=True)
    try:
        subprocess.run(["ip", "addr", "add", held.subnets[1].replace(".8/", ".14/"), "dev", interface], check=True)
        subprocess.run(["ip", "link", "set", interface, "up"], check=True)
        with pytest.raises(SubnetTaken, match=f"{re.escape(held.subnets[1])} is in use on the host, by {interface}"):
            held.executor.prepare(HostSetup(2, held.subnets[1]))
        assert held.count() == 1, "the network was removed"
    finally:
        subprocess.run(["ip", "link", "del", interface], check=True)
    assert held.subnets[1] in held.executor.observe(frozenset()).foreign_subnets, "the next network has another one"
    held.executor.prepare(HostSetup(2, held.subnets[1]))
    assert held.networks() == {1: held.subnets[0], 2: held.subnets[1]}


def test_an_attempt_starts_while_the_engine_still_holds_the_address_of_the_last_one(held: Held) -> None:
    """The engine reports the end of a container before it gives back its address."""
    held.executor.start(held.launch(1, address=3), None)
    for attempt in range(2, 7):
        launch = held.launch(attempt, address=3)
        held.api.create_container_from_config(container_request(launch, 64), container_name(held.server, launch.key))
        last = container_name(held.server, held.launch(attempt - 1, address=3).key)
        with closing(held.api.events(filters={"container": [last], "event": ["die"]}, decode=True)) as events:
            held.api.kill(last)
            next(iter(events))
        held.executor.start(launch, None)
        assert held.executor.observe(frozenset()).containers[launch.key].running


def test_a_container_that_has_the_address_of_a_job_is_named_until_it_is_gone(held: Held) -> None:
    launch = held.launch(1, address=2)
    stranger = held.api.inspect_container(held.stranger)["Name"].lstrip("/")
    with pytest.raises(EngineError) as error:
        held.executor.start(launch, None)
    assert f"the container {stranger} has the address {launch.address} of the job" in error.value.message
    assert f"`docker network disconnect {held.name} {stranger}` clears it" in error.value.message
    assert not error.value.permanent, "the server tries again"
    held.api.disconnect_container_from_network(held.stranger, held.name)
    held.executor.start(launch, None)
    assert held.executor.observe(frozenset()).containers[launch.key].running
