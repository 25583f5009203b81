"""The connections between a gang's supervisor and its roles, and who else may call."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from riseml.executors.slurm.gang_supervisor import GangSupervisor
from riseml.executors.slurm.role_wrapper import LineConnection


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xfe\n", b"[1]\n", b"x" * (1 << 20) + b"yz"])
def test_what_is_no_message_ends_the_connection(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=theirs.sendall, args=(sent,), daemon=True)
        sender.start()
        connection = LineConnection(ours)
        found: Any = []
        while found == []:
            found = connection.receive()
        assert found is None
        ours.close()
        theirs.close()
        sender.join(10)


def test_messages_are_lines_whatever_pieces_they_come_in() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = LineConnection(ours)
        theirs.sendall(b'{"a": 1}\n{}\n{"b"')
        assert connection.receive() == [{"a": 1}, {}]
        theirs.sendall(b": 2}\n")
        assert connection.receive() == [{"b": 2}]


def make_supervisor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> GangSupervisor:
    """Return the supervisor of a gang of two, without a Slurm around it."""
    roles = [
        {"role": name, "part": part, "grace": 0.0, "srun": []} for name, part in (("a", "DECIDES"), ("b", "SERVES"))
    ]
    plan = {"token": "secret", "python": "python3", "prefix": [], "stop_grace": 1.0, "roles": roles}
    (folder / "gang.json").write_text(json.dumps(plan))
    monkeypatch.setattr("signal.set_wakeup_fd", lambda *_: -1)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    return GangSupervisor(str(folder))


def test_who_has_no_token_is_sent_away_and_the_gang_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = make_supervisor(tmp_path, monkeypatch)
    peers = []
    for message in ({"role": "a", "token": "guess"}, {"role": "z", "token": "secret"}, {"token": None}):
        ours, theirs = socket.socketpair()
        peers += [ours, theirs]
        supervisor.callers.append(LineConnection(ours))
        LineConnection(theirs).send(message)
        supervisor._take_lines(supervisor.callers[-1])
        assert theirs.recv(1) == b""
    assert supervisor.callers == []
    assert [role.address for role in supervisor.roles] == ["", ""]
    for role in ("a", "b"):
        ours, theirs = socket.socketpair()
        peers += [ours, theirs]
        supervisor.callers.append(LineConnection(ours))
        LineConnection(theirs).send({"role": role, "token": "secret", "host": "n1", "port": 7, "node": "n1"})
        supervisor._take_lines(supervisor.callers[-1])
    assert LineConnection(peers[-1]).receive() == [{"go": {"a": "n1:7", "b": "n1:7"}}]
    for peer in peers:
        peer.close()
    supervisor.door.close()


def test_a_role_that_somebody_else_has_ended_is_no_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = make_supervisor(tmp_path, monkeypatch)
    supervisor.go_at = 1.0
    ours, theirs = socket.socketpair()
    with ours, theirs:
        supervisor.roles[1].lines = LineConnection(ours)
        LineConnection(theirs).send({"code": 143, "outside": True})
        supervisor._take_lines(supervisor.roles[1].lines)
    state = json.loads((tmp_path / "state.json").read_text())
    assert "scancel" in state["error"]
    assert (state["roles"]["b"]["exit_code"], state["roles"]["b"]["outside"]) == (143, state["error"])
    assert "ending" not in state["roles"]["a"]
    supervisor.door.close()


def test_a_second_job_of_one_gang_does_not_get_the_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (make_supervisor(tmp_path, monkeypatch) for _ in range(2))
    assert first.claim()
    assert not second.claim()
    for one in (first, second):
        one.door.close()
