"""What a job finds inside its container, and what of its secrets is found outside: nothing where it does not belong."""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import subprocess
import tarfile
from contextlib import closing
from typing import Any

import docker

from tests.hosts import Engine
from tests.rig import Rig, single

CANARY = "canary-8f3a1c-secret"
LOOK = r"""
grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status
echo "oom $(cat /proc/self/oom_score_adj)"
echo "core $(ulimit -c)"
echo "user $(id -u):$(id -g)"
for path in /var/run/docker.sock /run/docker.sock /dev/mem /dev/kmsg /dev/sda /dev/vda /proc/kcore-; do
  [ -e $path ] && echo "found $path"
done
grep -E 'docker|containerd' /proc/net/unix && echo "found a socket of the engine"
for path in /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max; do [ -r $path ] && echo "pids $(cat $path)"; done
for path in /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max; do
  [ -r $path ] && echo "memory $(cat $path)"
done
mount -t tmpfs none /mnt 2>/dev/null && echo "found that it may mount"
mknod /tmp/null c 1 3 2>/dev/null && echo "found that it may make devices"
touch /data/x 2>/dev/null && echo "found that data can be written"
echo 1 > /proc/sys/kernel/panic 2>/dev/null && echo "found that it may write /proc/sys"
ls /proc/1/root/etc/hostname >/dev/null
echo looked
sleep 600
"""


def inspect(rig: Rig, job: str = "train") -> dict[str, Any]:
    """What the engine says of a job's container."""
    assert isinstance(rig.host, Engine)
    found: dict[str, Any] = rig.host.api.inspect_container(rig.host.find(rig.server_id(), job))
    return found


def test_a_job_looks_around_and_finds_no_way_out(docker_rig: Rig) -> None:
    rig = docker_rig
    rig.submit(single(LOOK, limits={"mem": "64MiB"}, stop_grace=1))
    rig.wait("it has looked", lambda: "1.train looked" in rig.lines("1.train", follow=False))
    said = [line.removeprefix("1.train ") for line in rig.lines("1.train", follow=False)]
    facts = dict(re.split(r":?\s+", line, maxsplit=1) for line in said if re.match(r"\w+:?\s", line))
    assert [line for line in said if "found" in line] == []
    for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(facts[capabilities], 16) == 0, capabilities
    assert (facts["NoNewPrivs"], facts["Seccomp"]) in (("1", "2"), ("1", "0")), "2 where the engine has a profile"
    assert (facts["pids"], facts["memory"], facts["oom"], facts["core"]) == ("4096", str(64 * 2**20), "500", "0")
    assert facts["user"] == f"{os.getuid()}:{os.getgid()}", "whoever runs the server, and nobody more"
    rig.post("/v1/experiments/1/kill")
    rig.wait_closed("1")


def test_the_engine_was_asked_for_nothing_else(docker_rig: Rig) -> None:
    rig = docker_rig
    rig.submit(single("exec sleep 600", stop_grace=1))
    rig.wait_state("1", "RUNNING")
    found = inspect(rig)
    host = found["HostConfig"]
    assert host["Privileged"] is False
    assert host["CapAdd"] in (None, [])
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["Binds"] in (None, [])
    assert host["Devices"] in (None, [])
    assert host["PortBindings"] in (None, {})
    assert host["PublishAllPorts"] is False
    assert [host[name] for name in ("PidMode", "UTSMode", "UsernsMode", "CgroupParent", "Runtime")] == [
        "",
        "",
        "",
        "",
        "runc",
    ]
    assert host["IpcMode"] in ("private", "shareable")
    assert host["NetworkMode"] not in ("host", "default", "bridge")
    assert host["PidsLimit"] == 4096
    assert host["RestartPolicy"]["Name"] == "no"
    assert host["LogConfig"] == {"Type": "json-file", "Config": {"max-file": "2", "max-size": "4g"}}
    assert {(mount["Destination"], mount["RW"]) for mount in found["Mounts"]} == {("/output", True), ("/data", False)}
    assert not [mount for mount in found["Mounts"] if "sock" in mount["Source"]]
    rig.post("/v1/experiments/1/kill")
    rig.wait_closed("1")


def stores(rig: Rig) -> dict[str, str]:
    """Every file of the server's home, and each table of its store, as text."""
    found: dict[str, str] = {}
    for path in rig.home.rglob("*"):
        if path.is_file() and path.name not in ("riseml.db", "riseml.db-wal", "riseml.db-shm"):
            found[str(path.relative_to(rig.home))] = path.read_bytes().decode("latin-1")
    with closing(sqlite3.connect(rig.home / "riseml.db")) as store:
        for (table,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = store.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
            for index, name in enumerate(names):
                found[f"{table}.{name}"] = "\n".join(str(row[index]) for row in rows)
    return found


def test_a_secret_is_where_the_environment_is_kept_and_nowhere_else(docker_rig: Rig) -> None:
    """It has to be stored to survive a restart of the server: in one column, of a file that is the user's alone. The
    container has it too, for that is what it is for.
    """
    rig = docker_rig
    config = single(
        'test "$TOKEN" = "$SAME" && echo same; exec sleep 600',
        install=[f"echo {rig.home} # a step of its own"],
        env=["TOKEN", "SAME"],
        stop_grace=1,
    )
    rig.submit(config, environment={"TOKEN": CANARY, "SAME": CANARY})
    rig.wait("it runs", lambda: "1.train same" in rig.lines("1.train", follow=False))
    reference = inspect(rig)["Config"]["Image"]
    shown = [
        rig.get("/v1/experiments/1"),
        rig.get("/v1/experiments", all=True),
        rig.get("/v1/system"),
        rig.logs("1", follow=False),
        rig.post("/v1/plans", rig.submission(config, environment={"TOKEN": CANARY, "SAME": CANARY})).json(),
    ]
    assert CANARY not in json.dumps(shown)
    assert CANARY in str(inspect(rig)["Config"]["Env"]), "else the search would find nothing anywhere"
    found = inspect(rig)
    assert CANARY not in str({**found, "Config": {**found["Config"], "Env": None}}), "no label, no argument"
    rig.post("/v1/experiments/1/kill")
    rig.wait_closed("1")
    assert CANARY not in json.dumps([rig.get("/v1/experiments/1"), rig.logs("1")])
    assert {name for name, text in stores(rig).items() if CANARY in text} == {"experiments.environment"}
    for path in rig.home.glob("riseml.db*"):
        assert path.stat().st_mode & 0o077 == 0, path
    assert isinstance(rig.host, Engine)
    _assert_image_is_clean(rig.host.api, reference)


def _assert_image_is_clean(api: docker.APIClient, reference: str) -> None:
    assert CANARY not in json.dumps([api.history(reference), api.inspect_image(reference)])
    saved = io.BytesIO(b"".join(api.get_image(reference)))
    with tarfile.open(fileobj=saved) as image:
        small = [member for member in image if member.isfile() and member.size < 5_000_000]
        assert len(small) > 3
        for member in small:
            layer = image.extractfile(member)
            assert layer is not None
            assert CANARY.encode() not in layer.read(), member.name
    api.remove_image(reference)


def test_a_secret_is_not_in_the_arguments_of_any_process(process_rig: Rig) -> None:
    rig = process_rig
    rig.submit(single("echo here; exec sleep 600", env=["TOKEN"], stop_grace=1), environment={"TOKEN": CANARY})
    rig.wait("it runs", lambda: "1.train here" in rig.lines("1.train", follow=False))
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "sleep 600" in listed
    assert CANARY not in listed
    rig.post("/v1/experiments/1/kill")
    rig.wait_closed("1")
    assert {name for name, text in stores(rig).items() if CANARY in text} == {"experiments.environment"}
