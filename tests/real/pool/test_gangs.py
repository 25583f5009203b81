"""Gangs over several real hosts: their network, their environment, their output."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from tests.real.pool.conftest import NewEnvironments, PoolRig, list_tags
from tests.support.rig import BASE, GO, gang, single

HELLO = """
import json, os, socket, sys, time

def reach(host, port):
    while True:  # until its name is known here and it listens; the test has a deadline
        try:
            return socket.create_connection((host, port)).recv(9).decode()
        except OSError:
            time.sleep(0.05)

if sys.argv[1] == "listen":
    socket.create_server(("", int(os.environ.get("RISEML_PORT", 2222)))).accept()[0].sendall(b"hello")
elif sys.argv[1] == "greet":
    for name in sys.argv[2:]:
        print(name, reach(name, 2222))
else:
    cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
    print(json.dumps(cluster))
    for host, port in (at.split(":") for at in cluster["worker"] + cluster["ps"]):
        print(reach(host, int(port)))
"""
FILES = {"hello.py": HELLO}
LISTEN = "python3 hello.py listen"
PEERS = ("worker-1", "worker-2", "ps-1")
SCRIPT = {
    "master": f"python3 hello.py greet {' '.join(PEERS)}; echo done > $OUTPUT_DIR/master.txt",
    "worker.1": LISTEN,
    "worker.2": LISTEN,
    "ps.1": f"{LISTEN}; sleep 600",
}
WIDE = {"cpus": 1, "mem": "64MiB"}  # with two cpus a host, a gang of four needs two hosts
GREETINGS = [f"1.master {name} hello" for name in PEERS]


def test_a_gang_larger_than_a_host_spans_several(pool_rig: PoolRig) -> None:
    pool_rig.post("/v1/pool/join")
    pool_rig.submit(gang({**SCRIPT, "master": f"{SCRIPT['master']}; {GO}"}, resources=WIDE), FILES)
    pool_rig.wait_state("1", "RUNNING")
    explained = pool_rig.get("/v1/experiments/1/explain")
    pool_rig.go_file("1").touch()
    found = pool_rig.wait_closed("1")
    assert found["state"] == "FINISHED", pool_rig.lines("1")
    assert len({job["host"] for job in found["jobs"] if job["name"] != "build"}) == 2
    assert (explained["network"], explained["phase"]) == ("overlay", "placed")
    assert pool_rig.lines("1.master") == GREETINGS
    assert [path.name for path in pool_rig.shared_folder.glob("output/*/toaster/1/*.txt")] == ["master.txt"]
    pool_rig.check_nothing_left()


def test_the_environment_is_brought_to_every_host_before_anything_starts(
    pool_rig: PoolRig, new_environments: NewEnvironments
) -> None:
    pool_rig.post("/v1/pool/join")
    for host in pool_rig.hosts[1:]:
        if BASE in list_tags(host.api):
            host.api.remove_image(BASE, force=True)
    made = f"made {uuid4().hex}"  # no host has it
    script = {**SCRIPT, "master": f"cat /made; {SCRIPT['master']}"}
    pool_rig.submit(gang(script, resources=WIDE, install=[f"echo {made} > /made"]), FILES)
    found = pool_rig.wait_closed("1")
    assert found["state"] == "FINISHED", (found["message"], found["last_lines"], pool_rig.last_words())
    assert pool_rig.lines("1.master") == [f"1.master {made}", *GREETINGS]
    used = {job["host"] for job in found["jobs"]}
    assert len(used) == 2
    assert new_environments().keys() == used


def test_the_hosts_own_network(pool_rig: PoolRig) -> None:
    pool_rig.write_pool(network="host")
    script = {**SCRIPT, "master": "python3 hello.py reach"}
    pool_rig.submit(gang(script, resources=WIDE), FILES)
    found = pool_rig.wait_closed("1")
    assert found["state"] == "FINISHED", pool_rig.lines("1")
    cluster, *rest = [line.partition(" ")[2] for line in pool_rig.lines("1.master")]
    places = [at for ats in json.loads(cluster).values() for at in ats]
    assert {at.partition(":")[0] for at in places} <= {host.address for host in pool_rig.hosts}
    assert len(set(places)) == len(places) == 4
    assert rest == ["hello"] * 3


def test_output_in_a_volume(pool_rig: PoolRig) -> None:
    pool_rig.post("/v1/pool/join")
    folder = pool_rig.shared_folder / "volume"
    folder.mkdir()
    options = {"type": "none", "o": "bind", "device": str(folder)}
    name = f"riseml-test-{folder.stat().st_ino}"
    pool_rig.write_pool(storage={"output": {"volume": name, "driver": "local", "options": options}})
    try:
        pool_rig.submit(gang({**SCRIPT, "master": f"echo $OUTPUT_DIR; {SCRIPT['master']}"}, resources=WIDE), FILES)
        found = pool_rig.wait_closed("1")
        assert found["state"] == "FINISHED", (pool_rig.lines("1"), found)
        assert pool_rig.lines("1.master")[0].endswith("/toaster/1")
        (text,) = folder.glob("*/toaster/1/master.txt")
        assert text.stat().st_uid == (folder / text.parent).stat().st_uid
        assert found["output"].startswith(f"volume {name}: ")
    finally:
        for host in pool_rig.hosts:
            for volume in host.api.volumes(filters={"name": name})["Volumes"] or []:
                host.api.remove_volume(volume["Name"])


def test_a_gang_without_shared_output_gets_one_host_or_none(pool_rig: PoolRig) -> None:
    pool_rig.post("/v1/pool/join")
    pool_rig.write_pool(storage=None)
    answer = pool_rig.post("/v1/experiments", pool_rig.submission(gang(SCRIPT, resources=WIDE), FILES))
    assert answer.status_code == 403
    assert "share no output" in answer.json()["error"]["message"]
    pool_rig.submit(gang(SCRIPT), FILES)
    found = pool_rig.wait_closed("1")
    assert found["state"] == "FINISHED"
    (host,) = {job["host"] for job in found["jobs"] if job["name"] != "build"}
    assert pool_rig.post("/v1/tensorboards", {"experiments": ["1"]}).status_code == 201
    shown = pool_rig.wait_closed("2")  # the tests' image has none
    assert {job["host"] for job in shown["jobs"] if job["name"] == "tensorboard"} == {host}, "where the output is"
    assert "has no TensorBoard" in shown["last_lines"][-1]


def test_two_gangs_of_sixty_per_cent_run_one_after_the_other(pool_rig: PoolRig) -> None:
    pool_rig.post("/v1/pool/join")
    script = {job: GO for job in ("master", "worker.1", "worker.2")}
    for _ in range(2):
        pool_rig.submit(gang(script, resources={"cpus": 0.9, "mem": "64MiB"}))
    pool_rig.wait_state("1", "RUNNING")
    waiting = pool_rig.get("/v1/experiments/2/explain")
    assert (waiting["phase"], waiting["queue"]["position"]) == ("waits", 1)
    assert any("cpus" in one["text"] for host in waiting["hosts"] for job in host["jobs"] for one in job["shortages"])
    ends: list[dict[str, Any]] = []
    for name in ("1", "2"):
        pool_rig.wait_state(name, "RUNNING")
        pool_rig.go_file(name).touch()
        ends.append(pool_rig.wait_closed(name))
    assert [one["state"] for one in ends] == ["FINISHED", "FINISHED"]
    assert ends[1]["started_at"] >= ends[0]["ended_at"]


@pytest.mark.parametrize("count", [40])
def test_many_experiments_at_once_have_networks_of_their_own(pool_rig: PoolRig, count: int) -> None:
    pool_rig.write_pool(hosts={host.name: {"cpus": 2} for host in pool_rig.hosts})
    for _ in range(count):
        pool_rig.submit(single("exit 0", resources={"cpus": 0.1, "mem": "16MiB"}))
    found = [pool_rig.wait_closed(str(number)) for number in range(1, count + 1)]
    unfinished = [one for one in found if one["state"] != "FINISHED"]
    assert not unfinished, (len(unfinished), _reasons(unfinished[0]), pool_rig.last_words())
    pool_rig.check_nothing_left()


def _reasons(experiment: dict[str, Any]) -> dict[str, Any]:
    return {key: experiment[key] for key in ("message", "last_lines", "jobs")}
