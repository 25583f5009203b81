"""`riseml pool add` and `pool remove`, typed by a user, against an engine behind ssh."""

from __future__ import annotations

import getpass
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.transports.conftest import ssh_url
from tests.real.transports.servers import Sshd, make_key
from tests.support.command import run_riseml
from tests.support.ports import find_free_port
from tests.support.rig import Rig, single
from tests.support.root import need_root
from tests.support.terminal import run_on_terminal
from tests.support.waiting import DEADLINE

RISEML = (sys.executable, "-m", "riseml.cli")


class AddRig(Rig):
    """A server without a pool.yml, and commands for it."""

    def call(self, *words: str, code: int = 0) -> str:
        """Return what `riseml pool ...` prints without a terminal; it ends with this code."""
        done = run_riseml(["pool", *words], self.home, self.environ(), 3 * DEADLINE)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    @property
    def pool_file(self) -> Path:
        return self.home / "pool.yml"

    def left(self) -> list[str]:
        """Return what a refused host may not leave: a pool.yml, pinned keys, files of a trial."""
        names = ("pool.yml", "known_hosts")
        return [one.name for one in self.home.iterdir() if one.name in names or one.name.startswith(".")]


@pytest.fixture
def rig(tmp_path: Path, engine_url: str) -> Iterator[AddRig]:
    with AddRig(tmp_path / "home", engine_url) as rig:
        yield rig
        rig.clean_up()


def fingerprint(key: Path) -> str:
    """Return the fingerprint that the owner of a host reads from its key."""
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(key.with_suffix(".pub"))], capture_output=True, text=True, check=True
    )
    return shown.stdout.split()[1]


def test_a_host_joins_in_one_command(rig: AddRig, sshd: Sshd, engine_url: str) -> None:
    url, key = ssh_url(sshd, engine_url), fingerprint(sshd.host_key)
    words = ("add", "far", url, "--identity", str(sshd.identity))
    refused = rig.call(*words, code=4)
    assert "the host key of far is not pinned, and no user can compare it here: nothing was added" in refused
    assert f"`--host-key {key}`" in refused
    refused = rig.call(*words, "--host-key", f"SHA256:{'A' * 43}", code=4)
    assert "host far has no key with the fingerprint SHA256:AAAA" in refused
    tried = rig.call(*words, "--host-key", key, "--dry-run")
    assert "It fits. Nothing was changed" in tried
    assert rig.left() == []

    added = rig.call(*words, "--host-key", key, "--label", "rack=b2", "--json")
    found = json.loads(added)
    assert (found["state"], found["members"]) == ("added", [])
    assert {one["topic"] for one in found["findings"]} >= {"connection", "clock", "data", "output"}
    assert f"[127.0.0.1]:{sshd.port} ssh-ed25519 " in (rig.home / "known_hosts").read_text()
    assert rig.pool_file.read_text().endswith(f"hosts:\n{found['entry']}")
    (host,) = rig.get("/v1/pool")["hosts"]
    assert (host["name"], host["state"], host["labels"]["rack"]) == ("far", "up", "b2")
    rig.submit(single("echo far away"))
    assert rig.wait_closed("1")["state"] == "FINISHED"

    assert "the pool has a host far already" in rig.call(*words, code=4)
    assert "the pool has this engine already, as host far" in rig.call("add", "other", url, code=4)
    assert "far is the only host of the pool" in rig.call("remove", "far", code=4)


def test_an_alias_of_ssh_gives_the_address(tmp_path: Path, sshd: Sshd, engine_url: str) -> None:
    """The other hosts do not have the user's ssh configuration."""
    (tmp_path / "config").write_text(f"Host box\n  HostName 127.0.0.1\n  Port {sshd.port}\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {tmp_path}/config "$@"\n')
    (tmp_path / "bin" / "ssh").chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    with AddRig(tmp_path / "home", engine_url, PATH=path) as rig:
        url = f"ssh://{getpass.getuser()}@box{engine_url.removeprefix('unix://')}"
        words = ("add", "far", url, "--identity", str(sshd.identity), "--host-key", fingerprint(sshd.host_key))
        rig.call(*words)
        assert "    address: 127.0.0.1\n" in rig.pool_file.read_text()


def test_a_user_compares_the_key_on_a_terminal(rig: AddRig, sshd: Sshd, engine_url: str) -> None:
    command = [*RISEML, "pool", "add", "far", ssh_url(sshd, engine_url), "--identity", str(sshd.identity)]
    code, shown = run_on_terminal(command, rig.home, rig.environ(), "n\n")
    assert fingerprint(sshd.host_key).encode() in shown
    assert b"Is this what far has?" in shown
    assert (code, rig.left()) == (0, [])
    code, shown = run_on_terminal(command, rig.home, rig.environ(), "y\n")
    assert (code, b"far is in " in shown) == (0, True), shown
    assert "name: far" in rig.pool_file.read_text()


def test_one_engine_does_not_join_twice(rig: AddRig, sshd: Sshd, engine_url: str) -> None:
    before = f"# mine\nhosts:\n- {{name: here,  url: '{engine_url}', address: 192.0.2.1}}   # this one\nnetwork: host\n"
    rig.pool_file.write_text(before)
    rig.wait("the host answers", lambda: rig.get("/v1/pool")["hosts"][0]["state"] == "up")
    url = ssh_url(sshd, engine_url)
    words = ("add", "far", url, "--identity", str(sshd.identity), "--host-key", fingerprint(sshd.host_key))
    refused = rig.call(*words, "--address", "192.0.2.2", code=4)
    assert "it is the engine of here under another address" in refused
    assert rig.pool_file.read_text() == before


def test_hosts_that_cannot_be_asked_leave_nothing(rig: AddRig, sshd: Sshd, engine_url: str, tmp_path: Path) -> None:
    key = ("--host-key", fingerprint(sshd.host_key))
    nobody = find_free_port()
    unreachable = rig.call("add", "far", f"ssh://127.0.0.1:{nobody}", *key, code=5)
    assert "host far (ssh://127.0.0.1:" in unreachable
    assert "shows no host key" in unreachable
    no_docker = f"ssh://{getpass.getuser()}@127.0.0.1:{sshd.port}{tmp_path}/none.sock"
    refused = rig.call("add", "far", no_docker, "--identity", str(sshd.identity), *key, code=5)
    assert f"ssh gets in, but {tmp_path}/none.sock on the host cannot be opened" in refused
    assert "does Docker run there" in refused
    stranger = make_key(tmp_path / "stranger")
    refused = rig.call("add", "far", ssh_url(sshd, engine_url), "--identity", str(stranger), *key, code=5)
    assert "refuses the login (publickey)" in refused
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        refused = rig.call("add", "far", f"tcp://127.0.0.1:{silent.getsockname()[1]}", "--insecure", code=5)
    assert "does not answer" in refused
    assert rig.left() == []


@pytest.fixture
def open_sshd() -> Iterator[Sshd]:
    """Run an sshd whose files every user may read, so that another one can log in."""
    need_root("an sshd that logs in another user needs root")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = Sshd(Path(folder))
        server.start()
        yield server
        server.stop()


def test_pool_add_says_that_a_user_may_not_use_docker(rig: AddRig, open_sshd: Sshd, engine_url: str) -> None:
    sshd = open_sshd
    user = pwd.getpwnam("nobody").pw_name
    url = f"ssh://{user}@127.0.0.1:{sshd.port}{engine_url.removeprefix('unix://')}"
    words = ("--identity", str(sshd.identity), "--host-key", fingerprint(sshd.host_key))
    refused = rig.call("add", "far", url, *words, code=5)
    assert "on the host cannot be opened" in refused
    assert "may this user use it" in refused
    assert rig.left() == []


def test_a_first_host_does_not_strand_what_runs_here(rig: AddRig, sshd: Sshd, engine_url: str) -> None:
    rig.submit(single("sleep 600"))
    rig.wait_state("1", "RUNNING")
    words = ("--identity", str(sshd.identity), "--host-key", fingerprint(sshd.host_key))
    refused = rig.call("add", "far", ssh_url(sshd, engine_url), *words, code=4)
    assert "jobs run on this machine, which the pool would not have: 1.train" in refused
    assert f"`riseml pool add local {engine_url}` first" in refused
    rig.call("add", "local", engine_url)
    assert rig.experiment("1")["state"] == "RUNNING"
    (host,) = rig.get("/v1/pool")["hosts"]
    assert (host["name"], host["state"], host["jobs"]) == ("local", "up", ["1.train"])
