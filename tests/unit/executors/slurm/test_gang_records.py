"""What the records of a gang, and the words of Slurm beside them, tell its supervisor."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.slurm.gang_records import find_stop_cause, ran_out_of_memory
from tests.unit.executors.slurm.stages import OVER_MEMORY, PREEMPTED, WORDS


@pytest.mark.parametrize("name", ["batch.log", "ps.1.srun"])
def test_what_slurm_says_of_the_end_of_a_job_is_its_cause(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.srun").write_bytes(b"\xff srun: Job step creation temporarily disabled\n")
    assert not find_stop_cause(str(tmp_path))
    line = "slurmstepd: error: *** STEP 3.1 ON n2 CANCELLED AT 2026-11-23T13:45:00{} ***\n"
    (tmp_path / name).write_text(line.format(""))
    assert find_stop_cause(str(tmp_path)) == "Slurm ended the job: a scancel, or a preemption"
    (tmp_path / name).write_text(line.format("") + line.format(" DUE TO PREEMPTION"))
    assert find_stop_cause(str(tmp_path)) == "Slurm ended the job: another job preempted it"


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
