"""What a change of the pool did, and what stays on a host that was removed."""

from __future__ import annotations

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer


def test_pool_remove_says_what_stays(riseml: Riseml, fake_server: FakeServer) -> None:
    removed = {
        "name": "gpu1",
        "removed": True,
        "file": "/home/me/.riseml/pool.yml",
        "jobs": ["4.train"],
        "answers": True,
        "containers": 1,
        "networks": 0,
        "environments": 3,
        "size": 3 * 2**30,
        "swarm": "manager",
        "departure": "left",
        "output": "/mnt/\x1b[2Joutput",
        "shared_output": False,
        "known_hosts": "/home/me/.riseml/known_hosts",
    }
    fake_server.answers["POST /pool/hosts/gpu1/remove"] = (200, removed)
    shown = riseml("pool", "remove", "gpu1", "--force").out
    assert "1 job there counts as lost soon." in shown
    assert "3 environments of riseml, 3" in shown
    assert "It has left the swarm." in shown
    assert "\x1b" not in shown
