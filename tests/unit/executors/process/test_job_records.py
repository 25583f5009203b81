"""What supervisors of this and of older versions wrote about their jobs."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from riseml.executors.process import supervisor
from riseml.executors.process.job_records import SupervisorRecord, load_record, runs_now

FIRST_VERSION = {"server": "s", "title": "ann.1.train", "marker": "s/1/train/1", "pid": 7, "start": 9, "boot": "b"}
RUNNING = {**FIRST_VERSION, "gpus": ["0", "1"], "claimed_at": 1.0, "main": 8, "started_at": 2.0}
ENDED = {**RUNNING, "exit_code": 3, "finished_at": 4.5}


def at(seconds: float) -> datetime:
    """Return a time as records have it."""
    return datetime.fromtimestamp(seconds, UTC)


@pytest.mark.parametrize(
    ("state", "record"),
    [
        (FIRST_VERSION, SupervisorRecord("s", 7, 9, "b", marker="s/1/train/1")),
        (RUNNING, SupervisorRecord("s", 7, 9, "b", at(2), gpus=("0", "1"), marker="s/1/train/1", main=8)),
        (ENDED, SupervisorRecord("s", 7, 9, "b", at(2), 3, at(4.5), "", ("0", "1"), "s/1/train/1", 8)),
        (
            {**ENDED, "a field of a later version": 1},
            SupervisorRecord("s", 7, 9, "b", at(2), 3, at(4.5), "", ("0", "1"), "s/1/train/1", 8),
        ),
    ],
    ids=["the first version", "running", "ended", "a later version"],
)
def test_a_state_is_read_whatever_version_wrote_it(
    tmp_path: Path, state: dict[str, object], record: SupervisorRecord
) -> None:
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert load_record(tmp_path) == record
    assert record.has_ended is ("exit_code" in state)


def test_a_job_whose_command_could_not_run_has_ended() -> None:
    assert SupervisorRecord("s", 7, 9, "b", error="No such file or directory: /none").has_ended


def test_a_missing_state_is_no_record_and_a_torn_one_is_of_another_boot(tmp_path: Path) -> None:
    assert load_record(tmp_path) is None
    (tmp_path / "state.json").write_bytes(b'{"server": "s", "pi')
    torn = load_record(tmp_path)
    assert torn is not None
    assert not runs_now(torn)


@pytest.mark.parametrize(("start", "boot", "runs"), [(0, "", True), (1, "", False), (0, "another", False)])
def test_only_the_same_process_of_the_same_boot_runs(start: int, boot: str, *, runs: bool) -> None:
    own = supervisor.read_stat(os.getpid())
    assert own is not None
    record = SupervisorRecord("s", os.getpid(), own[2] + start, boot or supervisor.read_boot_id())
    assert runs_now(record) is runs
