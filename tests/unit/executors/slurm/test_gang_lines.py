"""The connections between a gang's supervisor and its roles, and who else may call."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from riseml.executors.slurm.gang_lines import SUPERVISOR, LineConnection, is_address, is_host
from tests.support.waiting import DEADLINE
from tests.unit.executors.slurm.supervisors import TOKEN, make_pair, set_clocks


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xfe\n", b"[1]\n", b"[" * 60_000 + b"\n", b"x" * (1 << 20) + b"yz"]
)
def test_an_invalid_message_ends_the_connection(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=theirs.sendall, args=(sent,), daemon=True)
        sender.start()
        connection = LineConnection(ours, TOKEN, SUPERVISOR)
        connection.challenge()
        found: Any = []
        while found == []:
            found = connection.receive()
        assert found is None
        ours.close()
        theirs.close()
        sender.join(DEADLINE)


def test_messages_are_lines_whatever_pieces_they_come_in() -> None:
    supervisor, role = make_pair()
    sent, kept = socket.socketpair()
    with role.connection, sent, kept, supervisor.connection:
        door, role.connection = role.connection, sent
        for message in ({"a": 1}, {}, {"b": 2}):
            role.send(message)
        data = kept.recv(1000)
        door.sendall(data[:-7])
        assert supervisor.receive() == [{"a": 1}, {}]
        door.sendall(data[-7:])
        assert supervisor.receive() == [{"b": 2}]
        door.close()


LINES: dict[str, Callable[[LineConnection, LineConnection, bytes], bytes]] = {
    "changed": lambda role, supervisor, line: line.replace(b"code", b"kode"),
    "twice": lambda role, supervisor, line: line * 2,
    "without the one before it": lambda role, supervisor, line: json.dumps(role._seal({"code": 0})).encode() + b"\n",
    "sent back": lambda role, supervisor, line: json.dumps(supervisor._seal({"code": 0})).encode() + b"\n",
    "of another connection": lambda role, supervisor, line: json.dumps(make_foreign_line()).encode() + b"\n",
    "without a proof": lambda role, supervisor, line: b'{"code": 0}\n',
}


def make_foreign_line() -> dict[str, Any]:
    """Return a line of another role of the same gang, or of the same role after another challenge."""
    supervisor, role = make_pair()
    for connection in (supervisor, role):
        connection.connection.close()
    return role._seal({"code": 0})


@pytest.mark.parametrize("change", LINES.values(), ids=LINES.keys())
def test_a_line_that_its_sender_did_not_send_now_ends_the_connection(
    change: Callable[[LineConnection, LineConnection, bytes], bytes],
) -> None:
    supervisor, role = make_pair()
    with supervisor.connection, role.connection:
        line = json.dumps(role._seal({"code": 0})).encode() + b"\n"
        role.connection.sendall(change(role, supervisor, line))
        assert supervisor.receive() is None


@pytest.mark.parametrize("host", ["$(id)", "a b", "a;b", "-oProxyCommand=x", "n1\n", "", "n" * 256, "é"])
def test_no_text_but_a_host_is_a_host(host: str) -> None:
    assert not is_host(host)
    assert not is_address(f"{host}:7")


@pytest.mark.parametrize("value", [7, None, ["n1"], b"n1"])
def test_what_is_no_text_is_no_host(value: object) -> None:
    assert not is_host(value)
    assert not is_address(value)


@pytest.mark.parametrize("address", ["n1:7", "node-3.cluster_a:65535", "fd00::7:40123", "fe80::1%eth0:7"])
def test_names_and_addresses_of_nodes_are_hosts(address: str) -> None:
    assert is_address(address)


@pytest.mark.parametrize("port", ["0", "65536", "", "-1", "7;", "\u0667"])
def test_no_value_but_a_port_is_a_port(port: str) -> None:
    assert not is_address(f"n1:{port}")


def test_a_process_that_was_suspended_lets_the_other_side_speak_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"monotonic": 1000.0}
    set_clocks(monkeypatch, now)
    connection, role = make_pair()
    with connection.connection, role.connection:
        now["monotonic"] += 3600.0
        connection.beat()
        assert not connection.is_silent()
        for _ in range(21):
            now["monotonic"] += 1.0
            connection.beat()
        assert connection.is_silent(), "the other side has had its time"
        role.send({})
        connection.receive()
        assert not connection.is_silent()
