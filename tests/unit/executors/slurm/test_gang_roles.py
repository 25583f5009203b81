"""Whatever comes first of what Slurm does when it ends a job, no role of the gang is the cause."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from riseml.executors.slurm import gang_records
from riseml.executors.slurm.gang_records import UNSAID
from riseml.job_programs import gang_rules
from tests.unit.executors.slurm.stages import MASTER, OVER_MEMORY, PREEMPTED, PS, WORDS, Stage

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
