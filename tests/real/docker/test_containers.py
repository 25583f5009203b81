"""What a job finds inside its container: no way out, and nothing besides what riseml.yml asks for."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from riseml.base.settings import read_settings, read_size
from riseml.executors.docker.containers import find_log_size
from tests.support.hosts import Engine
from tests.support.rig import Rig, single

pytestmark = pytest.mark.every_engine

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
    """Return the engine's inspection of a job's container."""
    assert isinstance(rig.host, Engine)
    found: dict[str, Any] = rig.host.api.inspect_container(rig.host.find(rig.server_id(), job))
    return found


def test_a_job_finds_no_way_out_of_its_container(shared_docker_rig: Rig) -> None:
    rig = shared_docker_rig
    name = rig.submit(single(LOOK, limits={"mem": "64MiB"}, stop_grace=1))["id"]
    job = f"{name}.train"
    rig.wait("it has looked", lambda: f"{job} looked" in rig.lines(job, follow=False))
    said = [line.removeprefix(f"{job} ") for line in rig.lines(job, follow=False)]
    facts = dict(re.split(r":?\s+", line, maxsplit=1) for line in said if re.match(r"\w+:?\s", line))
    assert [line for line in said if "found" in line] == []
    for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(facts[capabilities], 16) == 0, capabilities
    assert (facts["NoNewPrivs"], facts["Seccomp"]) in (("1", "2"), ("1", "0")), "2 where the engine has a profile"
    assert (facts["pids"], facts["memory"], facts["oom"], facts["core"]) == ("4096", str(64 * 2**20), "500", "0")
    assert facts["user"] == f"{os.getuid()}:{os.getgid()}", "the user who runs the server, without other groups"
    rig.post(f"/v1/experiments/{name}/kill")
    rig.wait_closed(name)


def test_a_container_has_no_other_settings(shared_docker_rig: Rig) -> None:
    rig = shared_docker_rig
    name = rig.submit(single("exec sleep 600", stop_grace=1))["id"]
    rig.wait_state(name, "RUNNING")
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
    assert host["LogConfig"] == {"Type": "json-file", "Config": {"max-file": "2", "max-size": str(4 * 2**30)}}
    assert {(mount["Destination"], mount["RW"]) for mount in found["Mounts"]} == {("/output", True), ("/data", False)}
    assert not [mount for mount in found["Mounts"] if "sock" in mount["Source"]]
    rig.post(f"/v1/experiments/{name}/kill")
    rig.wait_closed(name)


@pytest.mark.parametrize(
    ("limit", "size"), [("1MiB", "64MiB"), ("128MiB", "1GiB"), ("512MiB", "4GiB"), ("2GiB", "4GiB")]
)
def test_the_engine_keeps_no_more_of_an_output_than_the_server_may_need(limit: str, size: str) -> None:
    """A line takes more room in the engine's file than in the server's log: six times as much and 74 bytes at most."""
    log_limit = read_settings({"RISEML_LOG_LIMIT": limit}).log_limit
    assert find_log_size(log_limit) == read_size({"SIZE": size}, "SIZE", 0)
