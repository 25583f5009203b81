"""What supervisors of this and of older versions wrote about their jobs."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from riseml.executors.supervision import job_records, supervisor
from riseml.executors.supervision.job_records import SupervisorRecord, load_record, measure_run, runs_now

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


ODD_STATES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_text("{}"),
    "no object": lambda path: path.write_text("[1]"),
    "deep": lambda path: path.write_text('{"a":' * 100_000),
    "no date": lambda path: path.write_text(json.dumps({**RUNNING, "started_at": 1e300})),
    "not a number": lambda path: path.write_text(json.dumps({**RUNNING, "started_at": float("nan")})),
    "a text as a time": lambda path: path.write_text(json.dumps({**RUNNING, "started_at": "now"})),
    "a text as a pid": lambda path: path.write_text(json.dumps({**RUNNING, "pid": "7"})),
    "no pid of Linux": lambda path: path.write_text(json.dumps({**RUNNING, "pid": 10**30})),
    "a code that no store keeps": lambda path: path.write_text(json.dumps({**ENDED, "exit_code": 10**30})),
    "an error that no store keeps": lambda path: path.write_text(json.dumps({**ENDED, "error": "\ud800"})),
    "GPUs that are none": lambda path: path.write_text(json.dumps({**RUNNING, "gpus": [{}]})),
    "a FIFO": os.mkfifo,
    "a folder": os.mkdir,
    "a link to itself": lambda path: path.symlink_to(path),
    "a device without an end": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("put", ODD_STATES.values(), ids=ODD_STATES.keys())
def test_whatever_a_job_puts_in_the_place_of_its_state_is_a_damaged_one(
    tmp_path: Path, put: Callable[[Path], object]
) -> None:
    put(tmp_path / "state.json")
    assert load_record(tmp_path) == SupervisorRecord("", 0, 0, "")


def test_a_fifo_with_a_writer_in_place_of_a_state_blocks_no_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "state.json")
    writer = os.open(tmp_path / "state.json", os.O_RDWR | os.O_NONBLOCK)
    assert load_record(tmp_path) == SupervisorRecord("", 0, 0, "")
    os.close(writer)


def test_a_disk_that_cannot_be_read_damages_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> dict[str, object]:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(job_records, "read_record", refuse)
    with pytest.raises(OSError, match="Input/output"):
        load_record(tmp_path)


def test_a_job_measures_its_time_by_a_clock_that_nobody_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor of an older version did not, and the clock of another boot says nothing."""
    monkeypatch.setattr(supervisor, "read_uptime", lambda: 130.0)
    boot = supervisor.read_boot_id()
    runs = SupervisorRecord("s", 7, 9, boot, at(2), began=100.0)
    assert measure_run(runs) == 30.0
    assert measure_run(replace(runs, exit_code=0, finished_at=at(3), ran=12.5)) == 12.5
    assert measure_run(replace(runs, began=None)) is None
    assert measure_run(replace(runs, boot="another")) is None
    assert measure_run(replace(runs, exit_code=137)) is None, "its end was not recorded"
