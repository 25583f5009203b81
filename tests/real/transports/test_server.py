"""A server whose pool is a host behind ssh: from submit to end, with a `kill -9` of the server and of its tunnel."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.real.streams.conftest import Hands, use_two_shells
from tests.real.transports.conftest import ssh_url
from tests.real.transports.servers import Sshd, find_tunnels, wait
from tests.support.command import run_riseml
from tests.support.rig import GO, Rig, single


def test_a_command_pins_a_key(sshd: Sshd, engine_url: str, tmp_path: Path) -> None:
    rig = Rig(tmp_path / "home", engine_url)
    host = {"name": "far", "url": ssh_url(sshd, engine_url), "identity": str(sshd.identity)}
    (rig.home / "pool.yml").write_text(json.dumps({"hosts": [host]}))

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return run_riseml(["pool", *words], rig.home, rig.environ())

    with rig:
        silent = call()
        assert "`riseml pool trust far`" not in silent.stdout
        assert "its host key is not pinned" in silent.stderr
        refused = call("trust", "far")
        assert refused.returncode == 2
        assert "no user can compare the fingerprints of far" in refused.stderr
        (key,) = json.loads(call("trust", "far", "--json").stdout)["keys"]
        assert key["pinned"] == "no"
        wrong = call("trust", "far", "--fingerprint", "SHA256:abc")
        assert (wrong.returncode, "has no key with the fingerprint" in wrong.stderr) == (4, True)
        pinned = call("trust", "far", "--fingerprint", key["fingerprint"])
        assert pinned.returncode == 0
        assert f"Pinned in {rig.home}/known_hosts." in pinned.stdout
        assert "Pinned in" in call("trust", "far").stdout
        rig.wait("the host answers", lambda: rig.get("/v1/pool")["hosts"][0]["state"] == "up")


def test_an_experiment_behind_ssh_survives_a_kill_of_server_and_tunnel(
    sshd: Sshd, engine_url: str, tmp_path: Path
) -> None:
    rig = Rig(tmp_path / "home", engine_url)
    (rig.home / "known_hosts").write_bytes(sshd.known_hosts.read_bytes())
    host = {"name": "far", "url": ssh_url(sshd, engine_url), "identity": str(sshd.identity), "address": "192.0.2.1"}
    (rig.home / "pool.yml").write_text(json.dumps({"hosts": [host]}))
    with rig:
        rig.submit(single("echo begun; sleep 5; echo done"))
        rig.wait("it has begun", lambda: "1.train begun" in rig.lines("1", follow=False))
        (tunnel,) = find_tunnels(rig.server_pid())
        rig.kill()
        wait("the tunnel is gone, too", lambda: not tunnel.is_running())
        rig.start()
        (tunnel,) = rig.wait("there is a new tunnel", lambda: find_tunnels(rig.server_pid()))
        tunnel.kill()
        found = rig.wait_closed("1")
        assert (found["state"], found["reason"]) == ("FINISHED", "COMPLETED")
        assert rig.lines("1.train") == ["1.train begun", "1.train done"]
        assert rig.containers() == []
        (rig.home / "pool.yml").unlink()
        rig.wait("the pool is this machine again", lambda: rig.get("/v1/pool")["file"] is None)
        wait("the server closes the unused tunnel", lambda: not find_tunnels(rig.server_pid()))


def test_shells_behind_ssh_are_real_terminals_and_end_with_the_connection(
    sshd: Sshd, engine_url: str, tmp_path: Path
) -> None:
    rig = Rig(tmp_path / "home", engine_url)
    (rig.home / "known_hosts").write_bytes(sshd.known_hosts.read_bytes())
    host = {"name": "far", "url": ssh_url(sshd, engine_url), "identity": str(sshd.identity), "address": "192.0.2.1"}
    (rig.home / "pool.yml").write_text(json.dumps({"hosts": [host]}))
    with rig:
        rig.submit(single(GO))
        rig.wait_state("1", "RUNNING")
        hands = Hands(rig)
        use_two_shells(hands)
        hands.wait_until_nothing_is_left()
        with hands.open("shell", "1") as shell:
            shell.wait_for("A shell in 1.train")
            shell.type("echo be''gun\n")
            shell.wait_for("begun")
            sshd.stop()
            (tunnel,) = find_tunnels(rig.server_pid())
            tunnel.kill()
            code = shell.finish()
        assert (code, b"does not answer: " in shell.shown) == (5, True), shell.shown
        rig.wait("the server has noticed", lambda: rig.get("/v1/pool")["hosts"][0]["state"] == "silent")
        code, _, err = hands.call("exec", "1", "true")
        assert (code, "far, the host of 1.train, does not answer" in err) == (5, True), err
        sshd.start()
        rig.go_file("1").touch()
        assert rig.wait_closed("1")["state"] == "FINISHED"
