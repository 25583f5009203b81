"""A server whose pool is a host behind ssh: the whole way, also over a `kill -9` of the server and of its tunnel."""

from __future__ import annotations

import json
from pathlib import Path

from tests.rig import Rig, single
from tests.transports.conftest import ssh_url
from tests.transports.servers import Sshd, find_tunnels, wait


def test_an_experiment_on_a_host_behind_ssh(sshd: Sshd, engine_url: str, tmp_path: Path) -> None:
    rig = Rig(tmp_path / "home", engine_url)
    (rig.home / "known_hosts").write_bytes(sshd.known_hosts.read_bytes())
    host = {"name": "far", "url": ssh_url(sshd, engine_url), "identity": str(sshd.identity), "address": "192.0.2.1"}
    (rig.home / "pool.yml").write_text(json.dumps({"hosts": [host]}))
    with rig:
        rig.submit(single("echo begun; sleep 5; echo done"))
        rig.wait("it has begun", lambda: "1.train begun" in rig.lines("1", follow=False))
        assert rig.process is not None
        (tunnel,) = find_tunnels(rig.process.pid)
        rig.kill()
        wait("the tunnel is gone, too", lambda: not tunnel.is_running())
        rig.start()
        (tunnel,) = rig.wait("there is a new tunnel", lambda: find_tunnels(rig.process.pid))
        tunnel.kill()
        found = rig.wait_closed("1")
        assert (found["state"], found["reason"]) == ("FINISHED", "COMPLETED")
        assert rig.lines("1.train") == ["1.train begun", "1.train done"]
        assert rig.containers() == []
        assert [(one["name"], one["state"]) for one in rig.get("/v1/pool")["hosts"]] == [("far", "up")]
        (tunnel,) = find_tunnels(rig.process.pid)
        rig.stop()
        wait("the last tunnel is gone", lambda: not tunnel.is_running())
