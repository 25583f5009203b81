"""A server on a machine without Slurm's commands: they run on a login node, over one pinned ssh connection."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.real.slurm.test_gangs import COUNT, LINES, three
from tests.real.streams.conftest import Hands
from tests.real.transports.servers import Sshd, find_tunnels
from tests.support.rig import GO, Rig
from tests.support.slurm_cluster import SlurmCluster


@pytest.fixture
def login(tmp_path: Path, cluster: SlurmCluster) -> Iterator[Sshd]:
    """An sshd whose users find the commands of the cluster; its key is not pinned."""
    folder = tmp_path / "sshd"
    folder.mkdir()
    node = Sshd(folder, SetEnv=f"PATH={cluster.environment['PATH']}")
    node.start()
    yield node
    node.stop()


@pytest.fixture
def far_rig(tmp_path: Path, cluster: SlurmCluster, login: Sshd) -> Iterator[Rig]:
    """A server that finds no commands of Slurm on its own machine."""
    home = tmp_path / "home"
    url = f"ssh://{getpass.getuser()}@127.0.0.1:{login.port}"
    cluster.write_pool(home, f", login: '{url}', identity: {login.identity}")
    without = ":".join(part for part in os.environ["PATH"].split(":") if not Path(part, "sbatch").exists())
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("ssh", "ssh-keyscan", "setpriv", "sh", "env"):
        found = next(Path(part, name) for part in ("/usr/bin", "/bin") if Path(part, name).exists())
        (tools / name).symlink_to(found)
    rig = Rig(home, None, PATH=f"{tools}:{without}")
    rig.host = cluster
    with rig:
        yield rig
        rig.clean_up()


def test_a_gang_runs_through_a_login_node_whose_connection_breaks(
    far_rig: Rig, cluster: SlurmCluster, login: Sshd
) -> None:
    finding, *_ = far_rig.post("/v1/pool/check").json()["findings"]
    assert "its host key is not pinned" in finding["message"], finding
    (key,) = far_rig.get("/v1/pool/hosts/slurm/keys")["keys"]
    pinned = far_rig.post(f"/v1/pool/hosts/slurm/keys?fingerprint={key['fingerprint'].replace('+', '%2B')}")
    assert pinned.json()["keys"][0]["pinned"] == "yes"
    findings = far_rig.post("/v1/pool/check").json()["findings"]
    assert {one["outcome"] for one in findings} == {"ok"}, findings
    connections = login.log.count("Accepted publickey")  # a pin begins another attempt beside one that runs
    far_rig.submit(three({"master": f"{COUNT}; {GO}; {COUNT}", "worker.1": "true"}))
    far_rig.wait_state("1", "RUNNING")
    assert login.log.count("Accepted publickey") == connections, "all commands share one connection"
    code, out, err = Hands(far_rig).call("exec", "1.master", "--", "sh", "-c", "cat; hostname; exit 7", given=b"given ")
    assert (code, out[:7], err) == (7, b"given n", "")
    far_rig.wait("the command's way has ended", lambda: len(find_tunnels(far_rig.server_pid())) == 1)
    shared = min(find_tunnels(far_rig.server_pid()), key=psutil.Process.create_time)  # others are commands of the loop
    shared.kill()
    far_rig.go_file("1").touch()
    assert far_rig.wait_closed("1")["state"] == "FINISHED", far_rig.last_words()
    lines = [line for line in far_rig.lines("1") if " line " in line]
    assert lines == [f"1.master line {number}" for number in range(LINES)] * 2
    assert len(cluster.list_jobs(far_rig.server_id(), "all")) == 1
    far_rig.wait("it has connected again", lambda: login.log.count("Accepted publickey") == connections + 1)
