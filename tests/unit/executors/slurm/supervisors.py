"""A supervisor of a gang without a Slurm around it."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from riseml.executors.slurm import gang_lines, gang_roles, gang_supervisor
from riseml.executors.slurm.gang_lines import ROLE, SUPERVISOR, LineConnection
from riseml.executors.slurm.gang_supervisor import GangSupervisor

TOKEN = "secret"
"""The token of the gang."""


def make_supervisor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> GangSupervisor:
    """Return the supervisor of a gang of two, which takes no signals of this process."""
    roles = [
        {"role": name, "part": part, "grace": 0.0, "srun": []} for name, part in (("a", "DECIDES"), ("b", "SERVES"))
    ]
    plan = {"token": TOKEN, "python": "python3", "prefix": [], "stop_grace": 1.0, "roles": roles}
    (folder / "gang.json").write_text(json.dumps(plan))
    monkeypatch.setattr("signal.set_wakeup_fd", lambda *_: -1)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    return GangSupervisor(str(folder))


def call_supervisor(supervisor: GangSupervisor, token: str = TOKEN) -> LineConnection:
    """Call a supervisor as a role does, up to its challenge; return the role's side of the connection."""
    ours, theirs = socket.socketpair()
    caller = LineConnection(ours, TOKEN, SUPERVISOR)
    supervisor.callers.append(caller)
    caller.challenge()
    role = LineConnection(theirs, token, ROLE)
    assert role.receive(), "the challenge"
    return role


def join_gang(supervisor: GangSupervisor, **hello: Any) -> LineConnection:
    """Call a supervisor as a role of a gang, and let it read the call; return the role's side of the connection."""
    role = call_supervisor(supervisor)
    role.introduce({"host": "n1", "port": 7, "door": 8, "node": "n1", **hello})
    supervisor._take_lines(supervisor.callers[-1])
    return role


def make_pair() -> tuple[LineConnection, LineConnection]:
    """Return both sides of a connection of a role that has introduced itself: the supervisor's, and the role's."""
    ours, theirs = socket.socketpair()
    supervisor, role = LineConnection(ours, TOKEN, SUPERVISOR), LineConnection(theirs, TOKEN, ROLE)
    supervisor.challenge()
    assert role.receive()
    role.introduce({})
    assert supervisor.receive() == [{}]
    return supervisor, role


def set_clocks(monkeypatch: pytest.MonkeyPatch, now: dict[str, float]) -> None:
    """Let the programs of a gang read these clocks. Event loops of other tests would never wake by them again."""
    clocks = {name: lambda name=name: now[name] for name in now}
    for module in (gang_lines, gang_roles, gang_supervisor):
        monkeypatch.setattr(module, "time", SimpleNamespace(**{**vars(time), **clocks}))
