"""A gang of a master and a ps that run, without a Slurm around it, and what Slurm writes when it ends them."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from riseml.executors.slurm.gang_lines import LineConnection
from riseml.executors.slurm.gang_supervisor import GangSupervisor
from tests.unit.executors.slurm.supervisors import make_pair, make_supervisor

MASTER, PS = "a", "b"
PREEMPTED = "Slurm ended the job: another job preempted it"
WORDS = "slurmstepd: error: *** STEP 3.{} ON n2 CANCELLED AT 2026-11-23T13:45:00 DUE TO PREEMPTION ***\n"

OVER_MEMORY = {  # as Slurm 22.05.8 wrote it
    "killed by its cgroup": (
        "slurmstepd-n1: error: Detected 1 oom-kill event(s) in StepId=2.1. Some of your processes may have been killed "
        "by the cgroup out-of-memory handler.\nsrun: error: n1: task 0: Out Of Memory\n"
    ),
    "srun's word alone": "srun: error: n1: task 0: Out Of Memory\n",
    "cancelled by Slurm": (
        "slurmstepd-n1: error: StepId=1.1 exceeded memory limit (243818496 > 104857600), being killed\n"
        "srun: Job step aborted: Waiting up to 5 seconds for job step to finish.\n"
        "slurmstepd-n1: error: *** STEP 1.1 ON n1 CANCELLED AT 2026-11-23T21:15:53 ***\n"
        "srun: error: n1: task 0: Killed\n"
    ),
}


class Step:
    """The step of a role, which srun waits for; without a Slurm around it."""

    code: int | None = None

    def poll(self) -> int | None:
        return self.code


class Stage:
    """A gang of a master and a ps that run, and what happens to it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        self.folder = folder
        self.supervisor: GangSupervisor = make_supervisor(folder, monkeypatch)
        self.supervisor.go_at = 1.0
        self.steps = {role.name: Step() for role in self.supervisor.roles}
        self.wrappers: dict[str, LineConnection] = {}
        for role in self.supervisor.roles:
            role.lines, self.wrappers[role.name] = make_pair()
            role.address, role.record["started_at"] = "n1:7", 1.0
            role.srun = self.steps[role.name]  # type: ignore[assignment]  # what is asked of srun

    def tell(self, name: str, **message: Any) -> None:
        """Let a role tell its end."""
        role = next(one for one in self.supervisor.roles if one.name == name)
        if role.lines is not None:
            self.wrappers[name].send(message)
            self.supervisor._take_lines(role.lines)

    def end_step(self, name: str, words: str = "") -> None:
        """Let srun end after what Slurm has to say of its step."""
        (self.folder / f"{name}.srun").write_text(words)
        self.steps[name].code = 0

    def terminate(self) -> None:
        """Let Slurm send SIGTERM to the supervisor."""
        self.supervisor.signals, writer = socket.socketpair()  # type: ignore[assignment]  # read below
        writer.send(bytes([signal.SIGTERM]))
        with self.supervisor.signals, writer:  # type: ignore[attr-defined]  # a socket
            self.supervisor.signals = self.supervisor.signals.fileno()  # type: ignore[attr-defined]  # as it reads
            self.supervisor._take_signals()

    def turn(self) -> None:
        """Do what the supervisor does between two events."""
        self.supervisor._settle_ends()
        self.supervisor._look_after_roles()
        self.supervisor._keep_rules()

    def read_roles(self) -> dict[str, Any]:
        """Return the records that the server reads."""
        found: dict[str, Any] = json.loads((self.folder / "state.json").read_text())["roles"]
        return found

    def close(self) -> None:
        for role in self.supervisor.roles:
            role.close()
        for wrapper in self.wrappers.values():
            wrapper.connection.close()
        self.supervisor.listener.close()
