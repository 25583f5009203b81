"""The connections between a gang's supervisor and its roles, and who else may call."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from riseml.executors.slurm import gang_lines, gang_roles, gang_supervisor
from riseml.executors.slurm.gang_lines import BEAT, LineConnection, is_proven, prove
from riseml.executors.slurm.gang_records import find_stop_cause
from tests.support.waiting import DEADLINE
from tests.unit.executors.slurm.supervisors import make_supervisor


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xfe\n", b"[1]\n", b"[" * 60_000 + b"\n", b"x" * (1 << 20) + b"yz"]
)
def test_an_invalid_message_ends_the_connection(sent: bytes) -> None:
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
        sender.join(DEADLINE)


def test_messages_are_lines_whatever_pieces_they_come_in() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = LineConnection(ours)
        theirs.sendall(b'{"a": 1}\n{}\n{"b"')
        assert connection.receive() == [{"a": 1}, {}]
        theirs.sendall(b": 2}\n")
        assert connection.receive() == [{"b": 2}]


def set_clocks(monkeypatch: pytest.MonkeyPatch, now: dict[str, float]) -> None:
    """Let the programs of a gang read these clocks. Event loops of other tests would never wake by them again."""
    clocks = {name: lambda name=name: now[name] for name in now}
    for module in (gang_lines, gang_roles, gang_supervisor):
        monkeypatch.setattr(module, "time", SimpleNamespace(**{**vars(time), **clocks}))


def test_a_process_that_was_suspended_lets_the_other_side_speak_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"monotonic": 1000.0}
    set_clocks(monkeypatch, now)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = LineConnection(ours)
        now["monotonic"] += 3600.0
        connection.beat()
        assert not connection.is_silent()
        for _ in range(21):
            now["monotonic"] += 1.0
            connection.beat()
        assert connection.is_silent(), "the other side has had its time"
        theirs.sendall(b"{}\n")
        connection.receive()
        assert not connection.is_silent()


@pytest.mark.parametrize("wall", [-3600.0, 3600.0])
def test_a_clock_that_is_set_ends_no_sign_of_life(wall: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"time": 100_000.0, "monotonic": 1000.0}
    set_clocks(monkeypatch, now)
    supervisor = make_supervisor(tmp_path, monkeypatch)
    ours, theirs = socket.socketpair()
    with ours, theirs, supervisor.door:
        theirs.settimeout(0.0)
        supervisor.roles[0].lines = LineConnection(ours)
        assert supervisor.claim()
        supervisor._touch_claim()
        now["time"] += wall
        supervisor.roles[0].keep_alive()
        assert not supervisor.roles[0].silent
        now["monotonic"] += BEAT
        os.utime(tmp_path / "claim", (1, 1))
        supervisor.roles[0].keep_alive()
        supervisor._touch_claim()
        assert theirs.recv(100) == b"{}\n"
        assert os.stat(tmp_path / "claim").st_mtime > 1


def test_a_caller_without_token_is_refused_and_the_gang_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = make_supervisor(tmp_path, monkeypatch)
    peers = []
    proof = prove("secret", "role", "a")
    for message in (
        {"role": "a", "proof": prove("guess", "role", "a")},
        {"role": "z", "proof": prove("secret", "role", "z")},
        {"role": "b", "proof": proof},
        {"role": "a", "proof": "\ud800"},
        {"role": "a", "token": "secret"},
        {"proof": None},
    ):
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
        hello = {"role": role, "proof": prove("secret", "role", role), "host": "n1", "port": 7, "door": 8, "node": "n1"}
        LineConnection(theirs).send(hello)
        supervisor._take_lines(supervisor.callers[-1])
    found: list[dict[str, Any]] = LineConnection(peers[-1]).receive() or []
    answer = found[0]
    assert answer["go"] == {"a": "n1:7", "b": "n1:7"}
    assert is_proven(answer["proof"], "secret", "supervisor", json.dumps(answer["go"]))
    for peer in peers:
        peer.close()
    supervisor.door.close()


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
        one.door.close()


def test_many_silent_callers_keep_no_role_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = make_supervisor(tmp_path, monkeypatch)
    supervisor.door.bind(("127.0.0.1", 0))
    supervisor.door.listen(8)
    with ExitStack() as stack:
        for _ in range(110):
            stack.enter_context(socket.create_connection(supervisor.door.getsockname()))
            supervisor._accept_caller()
        first = supervisor.callers[0]
        role = stack.enter_context(socket.create_connection(supervisor.door.getsockname()))
        supervisor._accept_caller()
        hello = {"role": "a", "proof": prove("secret", "role", "a"), "host": "n1", "port": 7, "door": 8, "node": "n1"}
        LineConnection(role).send(hello)
        supervisor._take_lines(supervisor.callers[-1])
        assert supervisor.roles[0].address == "n1:7"
        supervisor._take_lines(first)  # the poll has named it, and it was closed since then
        for one in (*supervisor.callers, supervisor.roles[0].lines):
            assert one is not None
            one.door.close()
    supervisor.door.close()


def test_a_caller_that_has_gone_before_it_was_accepted_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = make_supervisor(tmp_path, monkeypatch)
    supervisor.door.bind(("127.0.0.1", 0))
    supervisor.door.listen(8)
    supervisor.door.settimeout(0.0)  # so that the kernel answers at once that there is no caller
    supervisor._accept_caller()
    assert supervisor.callers == []
    supervisor.door.close()


def test_a_connection_that_was_closed_since_the_poll_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = make_supervisor(tmp_path, monkeypatch)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lines = supervisor.roles[1].lines = LineConnection(ours)
        theirs.sendall(b"{}\n")
        supervisor._end_all("a scancel")  # before the start: it closes each connection
        supervisor._take_lines(lines)
    assert supervisor.error == "a scancel"
    supervisor.door.close()
