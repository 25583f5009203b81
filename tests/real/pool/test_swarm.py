"""The Docker Swarm of real hosts: its managers while hosts come, go and die, and a swarm without a leader."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import docker
import pytest
import requests

from riseml.executors.docker.labels import EXPERIMENT, HELPER, JOB, SERVER
from riseml.executors.docker.swarm import leave_swarm
from riseml.executors.transports.engine_client import Engine
from tests.real.pool.conftest import PoolRig
from tests.real.pool.engines import EngineHost
from tests.real.pool.test_commands import ask
from tests.support.rig import BASE, GO, gang, single
from tests.support.waiting import DEADLINE, wait_for


def leave_swarms(engines: tuple[EngineHost, ...]) -> None:
    """Let every engine leave its swarm, whatever other tests have made of it."""
    for host in engines:
        host.mend()
        if host.process is None or host.process.poll() is not None:
            host.start()
        if host.api.info()["Swarm"]["LocalNodeState"] != "inactive":
            leave_swarm(Engine(host.socket))


@pytest.fixture
def rig(tmp_path: Path, engines: tuple[EngineHost, ...]) -> Iterator[PoolRig]:
    """A pool of h1 alone, of hosts in no swarm; afterwards they are in none again."""
    for name in ("output", "data"):
        (tmp_path / "shared" / name).mkdir(parents=True)
    leave_swarms(engines)
    with PoolRig(tmp_path / "home", engines, tmp_path / "shared", RISEML_LOST_AFTER="15") as rig:
        rig.write_pool("h1")
        rig.wait_up("h1")
        yield rig
        rig.stop()  # or it would repair the swarm that is left
        leave_swarms(engines)
        rig.clean_up()


def add(rig: PoolRig, *names: str) -> None:
    for host in rig.hosts:
        if host.name in names:
            ask(rig, "pool", "add", host.name, host.url, "--insecure", "--cpus", "2")


def roles(rig: PoolRig) -> dict[str, str]:
    """What each host of the pool is in its swarm, as the server sees it."""
    return {host["name"]: host["swarm"] for host in rig.get("/v1/pool")["hosts"]}


def wait_roles(rig: PoolRig, *expected: str) -> list[str]:
    """Wait until the hosts of the pool have these roles, in any order, and return the managers: while a swarm elects a
    leader, the server shows what it saw before.
    """
    rig.wait(f"the roles are {expected}", lambda: sorted(roles(rig).values()) == sorted(expected))
    return managers(rig)


def managers(rig: PoolRig) -> list[str]:
    return [name for name, role in roles(rig).items() if role == "manager"]


MANAGER, MEMBER = "manager", "member"


@contextmanager
def left_by_another_server(host: EngineHost) -> Iterator[None]:
    """Leave on a host what a server that is gone may have left: a helper, and the container of a job that has ended."""
    server = {SERVER: "60ae5e4e" * 4}
    names = ["left-helper", "left-job"]
    for name, marks in zip(names, ({HELPER: "disk"}, {JOB: "train", EXPERIMENT: "1"}), strict=True):
        request = {"Image": BASE, "Cmd": ["true"], "Labels": {**server, **marks}, "HostConfig": {"NetworkMode": "none"}}
        host.api.create_container_from_config(request, name)
    host.api.start("left-job")
    host.api.wait("left-job")
    try:
        yield
    finally:
        for name in names:
            host.api.remove_container(name)


def test_hosts_that_are_added_one_by_one_make_a_swarm_with_one_manager_and_then_three(rig: PoolRig) -> None:
    add(rig, "h2")
    assert wait_roles(rig, MANAGER, MEMBER) == ["h1"]
    add(rig, "h3")
    wait_roles(rig, MANAGER, MANAGER, MANAGER)
    with left_by_another_server(rig.hosts[0]):
        assert "It has left the swarm." in ask(rig, "pool", "remove", "h1")
    wait_roles(rig, MANAGER, MEMBER)
    assert not rig.hosts[0].api.info()["Swarm"]["ControlAvailable"]
    add(rig, "h1")
    wait_roles(rig, MANAGER, MANAGER, MANAGER)
    for name in ("h2", "h3"):
        assert "It has left the swarm." in ask(rig, "pool", "remove", name)
    assert wait_roles(rig, MANAGER) == ["h1"]
    assert len(rig.hosts[0].api.nodes()) == 1, "the swarm has forgotten those that left"


def test_joining_repairs_two_managers_and_a_dead_host(rig: PoolRig) -> None:
    first, second, third = rig.hosts
    first.api.init_swarm(advertise_addr=first.address)
    token = first.api.inspect_swarm()["JoinTokens"]["Manager"]
    second.api.join_swarm([first.address], token, advertise_addr=second.address)
    rig.write_pool("h1", "h2")
    ask(rig, "pool", "join")  # or the server by itself, if it was first
    wait_roles(rig, MANAGER, MEMBER)
    rig.write_pool()
    third.kill()
    shown = ask(rig, "pool", "join")
    assert "h3    does not answer, and was left as it is" in shown
    rig.wait("one host manages the swarm", lambda: len(managers(rig)) == 1)
    third.start()
    rig.wait_up("h3")
    assert "h3    joined the swarm" in ask(rig, "pool", "join")
    wait_roles(rig, MANAGER, MANAGER, MANAGER)
    third.kill()
    removed = ask(rig, "pool", "remove", "h3")
    assert "The swarm has forgotten it." in removed
    wait_roles(rig, MANAGER, MEMBER)


def test_the_server_keeps_the_managers_by_itself(rig: PoolRig) -> None:
    add(rig, "h2", "h3")
    rig.write_pool("h1", "h2")  # by hand
    rig.wait("one of two hosts manages the swarm", lambda: len(managers(rig)) == 1)
    rig.write_pool()
    rig.wait("the third host manages it, too", lambda: len(managers(rig)) == 3)
    assert "manages the swarm of the pool now" in (rig.home / "server.log").read_text()


def test_a_host_without_which_the_swarm_has_no_majority_stays(rig: PoolRig) -> None:
    add(rig, "h2")
    (manager,) = wait_roles(rig, MANAGER, MEMBER)
    other = next(host for host in rig.hosts[:2] if host.name != manager)
    other.kill()
    refused = ask(rig, "pool", "remove", manager, code=4)
    assert "would lose the majority of its managers" in refused
    assert set(roles(rig)) == {"h1", "h2"}
    assert "The swarm has forgotten it." in ask(rig, "pool", "remove", other.name)


WIDE = {"cpus": 1, "mem": "64MiB"}  # with two cpus a host, a gang of four needs two hosts
SMALL = {"cpus": 0.1, "mem": "32MiB"}
GANG = {"master": GO, "worker.1": GO, "worker.2": GO, "ps.1": "sleep 600"}


def cut(rig: PoolRig, name: str) -> None:
    """Cut the link of a host, and wait until the server notices. The other hosts go on answering."""
    host = next(one for one in rig.hosts if one.name == name)
    host.cut()
    rig.wait(f"{name} is silent", lambda: states(rig)[name] == "silent")


def states(rig: PoolRig) -> dict[str, str]:
    return {host["name"]: host["state"] for host in rig.get("/v1/pool")["hosts"]}


def find_leader(rig: PoolRig, name: str) -> str:
    """The host that leads the swarm, as the engine of one host knows it."""
    host = next(one for one in rig.hosts if one.name == name)
    nodes = {node["Status"]["Addr"]: node for node in host.api.nodes()}
    (address,) = (one for one, node in nodes.items() if (node.get("ManagerStatus") or {}).get("Leader"))
    return next(one.name for one in rig.hosts if one.address == address)


def test_a_swarm_survives_each_host_and_a_new_majority_survives_two(rig: PoolRig) -> None:
    for host in rig.hosts[1:]:
        if not host.api.images(BASE):
            host.api.load_image(rig.hosts[0].api.get_image(BASE))
    add(rig, "h2", "h3")
    leader = find_leader(rig, "h1")
    kept, other = sorted({"h1", "h2", "h3"} - {leader})
    cut(rig, leader)
    rig.submit(gang(GANG, resources=WIDE))  # it needs both
    rig.wait_state("1", "RUNNING")  # managers that lose their leader are silent for 20 s to a server that waits for it
    assert set(rig.where().values()) == {kept, other}
    rig.go_file("1").touch()
    rig.wait_closed("1")
    cut(rig, other)
    rig.wait("the swarm has no leader", lambda: rig.get("/v1/pool")["swarm_trouble"])
    rig.submit(gang(GANG, resources=WIDE))
    rig.submit(single("exit 0", resources=SMALL))
    assert rig.wait_closed("3")["state"] == "FINISHED", "one host needs no swarm"
    named = "has no leader"
    for words in (("pool",), ("explain", "2"), ("status",), ("status", "2"), ("logs", "2", "--no-follow")):
        assert named in ask(rig, *words), words
    assert "no leader" in ask(rig, "pool", "check", code=1)
    assert named in (rig.home / "server.log").read_text()
    refused = ask(rig, "pool", "remove", kept, code=4)
    assert "has no leader" in refused
    asked = ask(rig, "pool", "recover", code=4)
    assert f"{kept} manages the swarm alone at first" in asked
    assert "no experiment runs across hosts, so that none is disturbed" in asked
    assert f"{kept}    manages the swarm alone" in ask(rig, "pool", "recover", "--yes")
    assert "has a leader" in ask(rig, "pool", "recover", "--yes", code=4)
    for host in rig.hosts:
        host.mend()
    rig.wait_state("2", "RUNNING")
    assert len(set(rig.where().values())) == 2
    rig.wait("all three manage the swarm again", lambda: len(managers(rig)) == 3)


def test_an_engine_that_refuses_at_first_leaves_its_swarm(engines: tuple[EngineHost, ...]) -> None:
    """It attaches a container while no other manager answers, and ends its part in the swarm late."""
    leave_swarms(engines)
    first, *others = engines
    first.api.init_swarm(advertise_addr=first.address)
    token = first.api.inspect_swarm()["JoinTokens"]["Manager"]
    for host in others:
        host.api.join_swarm([first.address], token, advertise_addr=host.address)
    first.api.create_network("across", driver="overlay", attachable=True)
    request = {"Image": BASE, "Cmd": ["true"], "HostConfig": {"NetworkMode": "across"}}
    container = first.api.create_container_from_config(request)["Id"]
    log = first.folder / "dockerd.log"
    said = log.stat().st_size
    try:
        for host in others:
            host.cut()
        starting = threading.Thread(target=start_in_vain, args=(first, container))
        starting.start()
        wait_for("it starts the container", lambda: is_held(first, container), DEADLINE)
        leave_swarm(Engine(first.socket))
        assert first.api.info()["Swarm"]["LocalNodeState"] == "inactive"
        starting.join()
        assert b"failed to shut down cluster node" in log.read_bytes()[said:], "it has refused at first"
    finally:
        first.api.remove_container(container, force=True)
        leave_swarms(engines)


def start_in_vain(host: EngineHost, container: str) -> None:
    with (
        docker.APIClient(base_url=host.socket, version="1.41", timeout=DEADLINE) as api,
        suppress(docker.errors.APIError),
    ):
        api.start(container)


def is_held(host: EngineHost, container: str) -> bool:
    """Whether the engine says nothing of a container, as while it starts it."""
    with docker.APIClient(base_url=host.socket, version="1.41", timeout=2) as api:
        try:
            api.inspect_container(container)
        except requests.exceptions.ReadTimeout:
            return True
    return False
