"""The connections between a gang's supervisor and its roles, and who else may call."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from riseml.executors.slurm import gang_lines, gang_roles, gang_supervisor
from riseml.executors.slurm.gang_lines import BEAT, ROLE, SUPERVISOR, LineConnection, is_address, is_host
from riseml.executors.slurm.gang_records import find_stop_cause
from tests.support.waiting import DEADLINE
from tests.unit.executors.slurm.supervisors import TOKEN, call_supervisor, join_gang, make_pair, make_supervisor


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


def set_clocks(monkeypatch: pytest.MonkeyPatch, now: dict[str, float]) -> None:
    """Let the programs of a gang read these clocks. Event loops of other tests would never wake by them again."""
    clocks = {name: lambda name=name: now[name] for name in now}
    for module in (gang_lines, gang_roles, gang_supervisor):
        monkeypatch.setattr(module, "time", SimpleNamespace(**{**vars(time), **clocks}))


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


@pytest.mark.parametrize("wall", [-3600.0, 3600.0])
def test_a_clock_that_is_set_ends_no_sign_of_life(wall: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"time": 100_000.0, "monotonic": 1000.0}
    set_clocks(monkeypatch, now)
    supervisor = make_supervisor(tmp_path, monkeypatch)
    lines, role = make_pair()
    with lines.connection, role.connection, supervisor.listener:
        role.connection.settimeout(0.0)
        supervisor.roles[0].lines = lines
        assert supervisor.claim()
        supervisor._touch_claim()
        now["time"] += wall
        supervisor.roles[0].keep_alive()
        assert not supervisor.roles[0].silent
        now["monotonic"] += BEAT
        os.utime(tmp_path / "claim", (1, 1))
        supervisor.roles[0].keep_alive()
        supervisor._touch_claim()
        assert role.receive() == [{}]
        assert os.stat(tmp_path / "claim").st_mtime > 1


def test_a_caller_without_token_is_refused_and_the_gang_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = make_supervisor(tmp_path, monkeypatch)
    stranger = call_supervisor(supervisor, "guess")
    stranger.introduce({"role": "a", "host": "n1", "port": 7, "door": 8, "node": "n1"})
    supervisor._take_lines(supervisor.callers[-1])
    peers = [stranger, join_gang(supervisor, role="z"), join_gang(supervisor, role="a", host=None)]
    for line in ({"role": "a", "token": TOKEN}, {"text": "{}", "proof": "\ud800", "nonce": "0" * 32}, {"nonce": None}):
        peers.append(call_supervisor(supervisor))
        peers[-1].connection.sendall(json.dumps(line).encode() + b"\n")
        supervisor._take_lines(supervisor.callers[-1])
    assert [peer.connection.recv(1) for peer in peers] == [b""] * len(peers)
    assert supervisor.callers == []
    assert [role.address for role in supervisor.roles] == ["", ""]
    peers += [join_gang(supervisor, role=role) for role in ("a", "b")]
    assert peers[-1].receive() == [{"go": {"a": "n1:7", "b": "n1:7"}}]
    for peer in peers:
        peer.connection.close()
    for one in supervisor.roles:
        one.close()
    supervisor.listener.close()


@pytest.mark.parametrize("name", ["batch.log", "ps.1.srun"])
def test_what_slurm_says_of_the_end_of_a_job_is_its_cause(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.srun").write_bytes(b"\xff srun: Job step creation temporarily disabled\n")
    assert not find_stop_cause(str(tmp_path))
    line = "slurmstepd: error: *** STEP 3.1 ON n2 CANCELLED AT 2026-11-23T13:45:00{} ***\n"
    (tmp_path / name).write_text(line.format(""))
    assert find_stop_cause(str(tmp_path)) == "Slurm ended the job: a scancel, or a preemption"
    (tmp_path / name).write_text(line.format("") + line.format(" DUE TO PREEMPTION"))
    assert find_stop_cause(str(tmp_path)) == "Slurm ended the job: another job preempted it"


def test_a_second_job_of_one_gang_does_not_get_the_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (make_supervisor(tmp_path, monkeypatch) for _ in range(2))
    assert first.claim()
    assert not second.claim()
    for one in (first, second):
        one.listener.close()


def test_many_silent_callers_keep_no_role_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = make_supervisor(tmp_path, monkeypatch)
    supervisor.listener.bind(("127.0.0.1", 0))
    supervisor.listener.listen(8)
    with ExitStack() as stack:
        for _ in range(110):
            stack.enter_context(socket.create_connection(supervisor.listener.getsockname()))
            supervisor._accept_caller()
        first = supervisor.callers[0]
        door = stack.enter_context(socket.create_connection(supervisor.listener.getsockname()))
        supervisor._accept_caller()
        role = LineConnection(door, TOKEN, ROLE)
        role.receive()
        role.introduce({"role": "a", "host": "n1", "port": 7, "door": 8, "node": "n1"})
        supervisor._take_lines(supervisor.callers[-1])
        assert supervisor.roles[0].address == "n1:7"
        supervisor._take_lines(first)  # the poll has named it, and it was closed since then
        for one in (*supervisor.callers, supervisor.roles[0].lines):
            assert one is not None
            one.connection.close()
    supervisor.listener.close()


def test_a_caller_that_has_gone_before_it_was_accepted_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = make_supervisor(tmp_path, monkeypatch)
    supervisor.listener.bind(("127.0.0.1", 0))
    supervisor.listener.listen(8)
    supervisor.listener.settimeout(0.0)  # so that the kernel answers at once that there is no caller
    supervisor._accept_caller()
    assert supervisor.callers == []
    supervisor.listener.close()


def test_a_connection_that_was_closed_since_the_poll_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = make_supervisor(tmp_path, monkeypatch)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lines = supervisor.roles[1].lines = LineConnection(ours, TOKEN, SUPERVISOR)
        theirs.sendall(b"{}\n")
        supervisor._end_all("a scancel")  # before the start: it closes each connection
        supervisor._take_lines(lines)
    assert supervisor.error == "a scancel"
    supervisor.listener.close()
