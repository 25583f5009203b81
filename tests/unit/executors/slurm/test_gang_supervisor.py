"""The supervisor of a gang: who may call it, what it claims, and when it ends its roles."""

from __future__ import annotations

import json
import os
import shutil
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from riseml.executors.slurm.gang_lines import BEAT, ROLE, SUPERVISOR, LineConnection
from riseml.executors.slurm.gang_roles import ReportedEnd, SupervisedRole
from riseml.job_programs import gang_rules
from tests.unit.executors.slurm.stages import MASTER, Stage
from tests.unit.executors.slurm.supervisors import (
    TOKEN,
    call_supervisor,
    join_gang,
    make_pair,
    make_supervisor,
    set_clocks,
)


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


def test_a_supervisor_whose_folder_the_server_has_removed_ends_its_roles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a partition of the network, when the server has given the attempt up."""
    stage = Stage(tmp_path / "gang", monkeypatch)
    stage.tell(MASTER, code=143)
    stage.end_step(MASTER)
    shutil.rmtree(stage.folder)
    stage.turn()
    master, ps = stage.supervisor.roles
    assert (master.record["exit_code"], ps.record["ending"]) == (143, "CASCADE")
    stage.close()


def test_every_role_gets_sigterm_before_the_state_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path / "gang", monkeypatch)
    done: list[str] = []
    monkeypatch.setattr(SupervisedRole, "say", lambda role, message: done.append(f"{role.name} {message['signal']}"))
    monkeypatch.setattr(stage.supervisor, "_write_state", lambda: done.append("state"))
    stage.supervisor._decide(gang_rules.FAILED)
    stage.supervisor._keep_rules()
    assert done == ["a TERM", "b TERM", "state"]
    stage.supervisor._keep_rules()
    assert len(done) == 3
    stage.close()


@pytest.mark.parametrize("wall", [-3600.0, 3600.0])
def test_the_time_of_a_role_is_right_when_the_clock_is_set(
    wall: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {"time": 100_000.0, "monotonic": 1000.0}
    set_clocks(monkeypatch, now)
    supervisor = make_supervisor(tmp_path, monkeypatch)
    lines, wrapper = make_pair()
    with lines.connection, wrapper.connection, supervisor.listener:
        role = supervisor.roles[0]
        role.lines = lines
        wrapper.send({"started": True})
        supervisor._take_lines(lines)
        now["time"] += wall
        now["monotonic"] += 12.5
        supervisor._end_role(ReportedEnd(role, 0, ""))
    assert role.record["ran"] == 12.5
