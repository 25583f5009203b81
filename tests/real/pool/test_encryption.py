"""Mallory reads the network between two hosts. An exploit that stays here, because it needs several engines."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from riseml.executors.docker import labels
from tests.exploits.conftest import Held, held
from tests.real.pool.conftest import PoolRig
from tests.real.pool.engines import BRIDGE
from tests.real.pool.test_gangs import WIDE
from tests.support.kernel import explain_missing_encryption
from tests.support.rig import gang

__all__ = ["held"]  # a fixture, used by every test here

SECRET = "the-weights-of-a-model-that-nobody-else-may-have"
TALK = f"""
import socket, sys, time

if sys.argv[1] == "listen":
    socket.create_server(("", 2222)).accept()[0].sendall(b"{SECRET}")
for name in sys.argv[2:]:
    while True:  # until it listens; the test has a deadline
        try:
            print(socket.create_connection((name, 2222)).recv(99).decode())
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
"""
PEERS = ("worker-1", "worker-2", "ps-1")
LISTEN = "python3 talk.py listen"
SCRIPT = {
    "master": f"python3 talk.py ask {' '.join(PEERS)}",
    "worker.1": LISTEN,
    "worker.2": LISTEN,
    "ps.1": f"{LISTEN}; sleep 600",
}
CONFIG = gang(SCRIPT, resources=WIDE)  # it needs two hosts


@pytest.mark.finding(11)
def test_networks_across_hosts_are_encrypted_by_default(pool_rig: PoolRig, held: Held) -> None:
    """Mallory has a machine in the network of a pool whose pool.yml says nothing of encryption."""
    pool_rig.post("/v1/pool/join")
    pool_rig.write_pool(encrypted=None)
    pool_rig.submit(CONFIG, {"talk.py": TALK})
    options = pool_rig.wait("the network across hosts is there", lambda: find_options(pool_rig))
    assert "encrypted" in options, options
    pool_rig.post("/v1/experiments/1/kill")
    pool_rig.wait_closed("1")
    held("the network that riseml made across hosts has Docker's option `encrypted`")


@pytest.mark.finding(11)
@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "plain"])
def test_what_jobs_send_to_another_host_is_read_on_the_way(pool_rig: PoolRig, held: Held, *, encrypted: bool) -> None:
    """Mallory records every packet between the hosts of a pool, and searches them for what the jobs send.

    Without encryption she finds it: that proves the search.
    """
    missing = explain_missing_encryption() if encrypted else None
    if missing is not None:
        pytest.skip(f"this kernel has no ESP, so that no engine can encrypt here: {missing}")
    pool_rig.post("/v1/pool/join")
    pool_rig.write_pool(encrypted=encrypted)
    with recorded_packets() as packets:
        pool_rig.submit(CONFIG, {"talk.py": TALK})
        assert pool_rig.wait_closed("1")["state"] == "FINISHED", pool_rig.lines("1")
    assert pool_rig.lines("1.master") == [f"1.master {SECRET}"] * len(PEERS)
    assert any(SECRET.encode() in packet for packet in packets) is not encrypted
    held("no packet holds it" if encrypted else "she finds it, as docs/pool-yml.md says of `encrypted: false`")


def find_options(rig: PoolRig) -> dict[str, Any] | None:
    """Return the options of the first experiment's network, once a host has it."""
    mine = [labels.label_filter(labels.SERVER, rig.server_id()), labels.label_filter(labels.EXPERIMENT, "1")]
    found = [network for host in rig.hosts for network in host.api.networks(filters={"label": mine})]
    return dict(found[0]["Options"] or {"none": ""}) if found else None


@contextmanager
def recorded_packets() -> Iterator[list[bytes]]:
    """Record what passes the bridge between the hosts."""
    packets: list[bytes] = []
    ended = threading.Event()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3)) as door:  # 3: every protocol
        door.bind((BRIDGE, 0))
        door.settimeout(0.2)

        def record() -> None:
            while not ended.is_set():
                try:
                    packets.append(door.recv(65536))
                except TimeoutError:
                    continue

        recorder = threading.Thread(target=record)
        recorder.start()
        try:
            yield packets
        finally:
            ended.set()
            recorder.join()
