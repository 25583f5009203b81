"""Whatever comes first of what Slurm does when it ends a job, no role of the gang is the cause."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from riseml.base.errors import EngineError
from riseml.base.names import HostName, JobName
from riseml.control.actions import Signal
from riseml.executors.slurm import gang_records
from riseml.executors.slurm.executor import SlurmExecutor
from riseml.executors.slurm.gang_folder import GangFolder
from riseml.executors.slurm.gang_lines import LineConnection
from riseml.executors.slurm.gang_records import UNSAID, find_stop_cause, ran_out_of_memory
from riseml.executors.slurm.gang_roles import SupervisedRole
from riseml.executors.slurm.gang_supervisor import GangSupervisor
from riseml.job_programs import gang_rules
from riseml.model import JobKey
from riseml.spec.pool.types import SlurmSpec
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


Event = Callable[[Stage], None]
STOP: dict[str, Event] = {
    "the end of the master": lambda stage: stage.tell(MASTER, code=0),  # it answers SIGTERM with 0
    "the end of the ps": lambda stage: stage.tell(PS, code=143),
    "the end of the master's step": lambda stage: stage.end_step(MASTER, WORDS.format(0)),
    "the end of the ps' step": lambda stage: stage.end_step(PS, WORDS.format(1)),
    "SIGTERM at the supervisor": Stage.terminate,
}


def test_no_order_of_what_slurm_does_makes_a_role_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, order in enumerate(itertools.permutations(STOP)):
        stage = Stage(tmp_path / str(number), monkeypatch)
        for name in order:
            STOP[name](stage)
            stage.turn()
            if (stage.folder / "state.json").exists():
                ended = [one for one in stage.read_roles().values() if "exit_code" in one]
                assert all(one["outside"] in (PREEMPTED, UNSAID) and "ending" not in one for one in ended), order
        assert [one.get("exit_code") for one in stage.read_roles().values()] == [0, 143], order
        assert stage.supervisor.verdict == gang_rules.FAILED, order
        stage.close()


def test_a_role_that_fails_by_itself_is_the_cause_in_every_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: dict[str, Event] = {
        "the end of the ps": lambda stage: stage.tell(PS, code=143),
        "the end of the ps' step": lambda stage: stage.end_step(PS),
        "the end of the master's step": lambda stage: stage.end_step(MASTER, "srun: error: n1: Exited with code 7\n"),
    }
    for number, order in enumerate(itertools.permutations(ends)):
        stage = Stage(tmp_path / str(number), monkeypatch)
        stage.tell(MASTER, code=7)
        for name in order:
            stage.turn()
            ends[name](stage)
        stage.turn()
        master, ps = stage.read_roles().values()
        assert (master["exit_code"], master["error"], "outside" in master) == (7, "", False), order
        assert (ps["exit_code"], "outside" in ps) == (143, False), order
        assert ps.get("ending") == "CASCADE" or ps["finished_at"] >= master["finished_at"], order
        stage.close()


def test_a_step_that_does_not_end_does_not_delay_the_verdict_forever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path / "gang", monkeypatch)
    stage.tell(MASTER, code=0)
    stage.turn()
    assert not stage.supervisor.verdict
    (end,) = stage.supervisor.ends._waiting
    end.reported_at -= 3600.0
    stage.turn()
    assert stage.supervisor.verdict == gang_rules.FINISHED
    stage.close()


def test_a_role_that_says_that_slurm_signalled_it_has_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with exit code 0, and when Slurm says nothing of it."""
    stage = Stage(tmp_path / "gang", monkeypatch)
    stage.tell(MASTER, code=0, outside=True)
    stage.end_step(MASTER)
    stage.turn()
    master, ps = stage.read_roles().values()
    assert (master["exit_code"], master["outside"], ps["outside"]) == (0, UNSAID, UNSAID)
    assert "ending" not in ps
    assert stage.supervisor.verdict == gang_rules.FAILED
    stage.close()


@pytest.mark.parametrize("words", ["", WORDS.format(0)])
def test_a_job_that_slurm_ends_before_its_roles_are_all_there_counts_as_lost(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path / "gang", monkeypatch)
    stage.supervisor.go_at = 0.0
    for role in stage.supervisor.roles:
        del role.record["started_at"]
    master = stage.supervisor.roles[0]
    master.lose()
    stage.turn()
    assert not master.ended
    stage.end_step(MASTER, words)
    stage.turn()
    records = stage.read_roles().values()
    assert {one["outside"] for one in records} == {PREEMPTED if words else "a was lost before all roles were there"}
    assert not any("started_at" in one for one in records)
    stage.close()


@pytest.mark.parametrize("words", OVER_MEMORY.values(), ids=OVER_MEMORY.keys())
@pytest.mark.parametrize("wrapper", ["tells the end", "is killed, too"])
def test_a_role_over_its_memory_is_the_cause_and_its_record_says_so(
    words: str, wrapper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path / "gang", monkeypatch)
    if wrapper == "tells the end":
        stage.tell(MASTER, code=137)
    else:
        stage.supervisor.roles[0].lose()
    stage.end_step(MASTER, words)
    stage.turn()
    master, ps = stage.read_roles().values()
    assert (master["exit_code"], master["error"], master["oom"], "outside" in master) == (137, "", True, False)
    assert ps["ending"] == "CASCADE"
    stage.close()


@pytest.mark.parametrize("words", ["", WORDS.format(0), "srun: error: n1: task 0: Killed\n", "python: out of memory\n"])
def test_a_role_of_whose_memory_slurm_says_nothing_is_not_out_of_memory(words: str, tmp_path: Path) -> None:
    (tmp_path / "a.srun").write_text(words)
    assert not ran_out_of_memory(str(tmp_path), "a")
    assert not ran_out_of_memory(str(tmp_path), "b")


def test_a_preemption_beside_a_role_over_its_memory_is_still_the_cause(tmp_path: Path) -> None:
    (tmp_path / "a.srun").write_text(OVER_MEMORY["cancelled by Slurm"])
    assert find_stop_cause(str(tmp_path)) == ""
    (tmp_path / "b.srun").write_text(WORDS.format(1))
    assert find_stop_cause(str(tmp_path)) == PREEMPTED


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


def test_what_slurm_says_is_read_once_for_all_roles_that_end_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path / "gang", monkeypatch)
    read: list[str] = []

    def count(folder: str) -> str:
        read.append(folder)
        return ""

    monkeypatch.setattr(gang_records, "find_stop_cause", count)
    for name in (MASTER, PS):
        stage.tell(name, code=0)
        stage.end_step(name)
    stage.turn()
    assert all(role.ended for role in stage.supervisor.roles)
    assert len(read) == 1
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


@pytest.mark.parametrize("signal_", [Signal.TERM, Signal.KILL])
def test_a_kill_on_a_full_shared_folder_cancels_the_job_in_slurm(
    signal_: Signal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "orders")

    executor = SlurmExecutor(HostName("cluster"), "5e7a" * 8, SlurmSpec(folder=str(tmp_path)))
    key = JobKey(4, JobName("train"), 1)
    folder = executor._folders.find_gang(key)
    folder.make()
    folder.write_gang({"token": "secret"}, {key.job: {}})
    cancelled: list[Path] = []
    monkeypatch.setattr(GangFolder, "order_stop", refuse)
    monkeypatch.setattr(executor, "_cancel", lambda gang: cancelled.append(gang.path))
    if signal_ is Signal.TERM:
        with pytest.raises(EngineError, match="No space left on device"):
            executor.stop(key, signal_)
    else:
        executor.stop(key, signal_)
    assert cancelled == ([folder.path] if signal_ is Signal.KILL else [])
    executor.close()
