"""`pool add`: what it says of the host, and that it trusts no unknown key."""

from __future__ import annotations

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer

ADDED = {
    "name": "gpu1",
    "state": "added",
    "file": "/home/me/.riseml/pool.yml",
    "entry": "  - name: gpu1\n    url: ssh://me@gpu1\n",
    "keys": None,
    "engine": "Docker 26.1.5",
    "cpus": 64.0,
    "mem_mib": 262_144,
    "gpus": 0,
    "findings": [{"host": "gpu1", "topic": "clock", "outcome": "ok", "message": "within 0 s of this server's clock"}],
    "members": [{"host": "gpu1", "membership": "joined"}],
}
KEYS = {
    "host": "gpu1",
    "known_hosts": "/home/me/.riseml/known_hosts",
    "keys": [{"kind": "ED25519", "fingerprint": "SHA256:abc", "pinned": "no"}],
}


def test_pool_add_says_what_it_found_and_did(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /pool/hosts"] = (200, ADDED)
    shown = riseml("pool", "add", "gpu1", "ssh://me@gpu1").out
    assert "gpu1: Docker 26.1.5, 64 cores, 256.0 GiB of memory." in shown
    assert "gpu1 joined the swarm." in shown
    assert "gpu1 is in /home/me/.riseml/pool.yml and takes jobs:\n  - name: gpu1\n    url: ssh://me@gpu1\n" in shown


def test_pool_add_refuses_an_unknown_key_without_a_terminal(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["POST /pool/hosts"] = (200, {**ADDED, "state": "untrusted", "keys": KEYS})
    for options in ((), ("--json",)):
        refused = riseml("pool", "add", "gpu1", "ssh://me@gpu1", *options)
        assert (refused.code, refused.out) == (4, "")
        assert "the host key of gpu1 is not pinned, and no user can compare it here: nothing was added" in refused.err
        assert "`--host-key SHA256:abc`" in refused.err
