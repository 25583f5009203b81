"""The folders of jobs, while other threads make and remove jobs."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from riseml.base.names import JobName
from riseml.executors.process.job_folders import COPIED, KILLED, RESTARTED, ProcessJobFolders, list_running_jobs
from riseml.executors.supervision import supervisor
from riseml.executors.supervision.job_records import SupervisorRecord
from riseml.executors.supervision.output_log import STDOUT, OutputLog
from riseml.executors.this_machine.removal import remove_tree
from riseml.model import JobKey
from tests.support.deep_folders import make_deep_folders
from tests.support.waiting import DEADLINE

SERVER = "a" * 32
KEPT = [JobKey(experiment, JobName(job), 1) for experiment in (1, 2, 3) for job in ("master", "worker.1")]
ROUNDS = 20


def claim(folders: ProcessJobFolders, key: JobKey, pid: int | None = None) -> None:
    """Write the record of a job as its supervisor does; without a pid this process is its supervisor."""
    own = supervisor.read_stat(os.getpid())
    assert own is not None
    state = {"server": SERVER, "pid": pid or os.getpid(), "start": own[2], "boot": supervisor.read_boot_id()}
    folder = folders.job_folder(key)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / supervisor.STATE_FILE
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({**state, "started_at": 1.0, "marker": folders.make_marker(key)}))
    fresh.rename(path)


@contextmanager
def repeat(work: list[threading.Thread]) -> Iterator[None]:
    """Run threads beside the body."""
    for thread in work:
        thread.start()
    yield
    for thread in work:
        thread.join()


def test_jobs_that_run_are_seen_while_others_come_and_go(tmp_path: Path) -> None:
    folders = ProcessJobFolders(tmp_path, SERVER)
    for key in KEPT:
        claim(folders, key)
    done = threading.Event()
    raised: list[Exception] = []

    def come_and_go(experiment: int) -> None:
        try:
            for count in range(ROUNDS):
                key = JobKey(experiment if count % 2 else 1, JobName(f"worker.{experiment}"), 1)
                folders.experiment_folder(key.experiment).mkdir(exist_ok=True)
                claim(folders, key, pid=1)  # its supervisor has been killed
                folders.discard_folder(folders.job_folder(key))
                if key.experiment != 1:
                    folders.discard_folder(folders.experiment_folder(key.experiment))
        except Exception as error:  # noqa: BLE001  # the test reports it
            raised.append(error)

    def rewrite() -> None:
        while not done.is_set():
            claim(folders, KEPT[0])

    goers = [threading.Thread(target=come_and_go, args=(number,), daemon=True) for number in (10, 11)]
    with repeat([threading.Thread(target=rewrite, daemon=True)]):
        with repeat(goers):
            while any(goer.is_alive() for goer in goers):
                seen = {key for key in folders.list_jobs() if folders.settle_job_record(key) is not None}
                assert seen >= set(KEPT)
        done.set()
    assert raised == []


def test_a_job_that_has_printed_has_run_also_when_its_record_is_damaged(tmp_path: Path) -> None:
    """Its log is read to its end before it is removed, as after a power cut that left zeros in its record."""
    folders, (printed, silent) = ProcessJobFolders(tmp_path, SERVER), KEPT[:2]
    for key in (printed, silent):
        folders.job_folder(key).mkdir(parents=True)
        (folders.job_folder(key) / supervisor.STATE_FILE).write_bytes(bytes(200))
    OutputLog(str(folders.log_path(printed))).write_output(STDOUT, b"line 1\n")
    found = folders.settle_job_record(printed)
    assert found is not None
    assert (found.exit_code, found.error) == (KILLED, RESTARTED)
    assert found.started_at is not None
    assert found.started_at.timestamp() == pytest.approx(time.time(), abs=DEADLINE)
    other = folders.settle_job_record(silent)
    assert other is not None
    assert (other.started_at, other.exit_code) == (None, None)


class _RemovingFolders(ProcessJobFolders):
    """Folders whose jobs another thread removes between two reads of their records."""

    def load_job_record(self, key: JobKey) -> SupervisorRecord | None:
        found = super().load_job_record(key)
        self.discard_folder(self.job_folder(key))
        return found


def test_a_job_that_is_removed_while_it_is_observed_is_not_an_error(tmp_path: Path) -> None:
    folders = _RemovingFolders(tmp_path, SERVER)
    claim(folders, KEPT[0], pid=1)
    assert folders.settle_job_record(KEPT[0]) is None


def test_a_deep_folder_of_a_stranger_is_removed_when_the_server_starts(tmp_path: Path) -> None:
    folders = ProcessJobFolders(tmp_path, "b" * 32)
    claim(folders, KEPT[0], pid=1)
    make_deep_folders(folders.job_folder(KEPT[0]), 1100)
    folders.sweep_leftovers()
    assert (list(folders.list_jobs()), os.listdir(tmp_path / ".trash")) == ([], [])


def test_a_folder_that_cannot_be_removed_is_logged_and_the_next_one_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folders = ProcessJobFolders(tmp_path, SERVER)
    for name in ("1", "2", "3"):
        (tmp_path / ".trash" / name).mkdir()

    def fail_once(folder: Path) -> None:
        if folder.name == "2":
            raise RecursionError("too deep")
        remove_tree(folder)

    monkeypatch.setattr("riseml.executors.process.job_folders.remove_tree", fail_once)
    folders.sweep_leftovers()
    assert os.listdir(tmp_path / ".trash") == ["2"]
    assert str(tmp_path / ".trash" / "2") in caplog.text


@pytest.mark.parametrize(
    ("score", "leads", "stays"),
    [(500, False, False), (500, True, True), (0, False, True)],
    ids=["its supervisor is gone", "another process has its pid", "another program has its session"],
)
def test_a_process_without_the_marker_ends_with_its_supervisor(
    tmp_path: Path, *, score: int, leads: bool, stays: bool
) -> None:
    """It has emptied its environment. The test stands for the server, and a shell for the supervisor."""
    folders = ProcessJobFolders(tmp_path, SERVER)
    script = f"echo {score} > /proc/self/oom_score_adj; env -i sleep 600 >/dev/null & echo $!; read go"
    with subprocess.Popen(
        ["/bin/sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        left = psutil.Process(int(shell.stdout.readline()))
        if not leads:
            shell.stdin.close()
            shell.wait()
        claim(folders, KEPT[0], pid=shell.pid)
        assert folders.settle_job_record(KEPT[0]) is not None
        assert (left.is_running() and left.status() != psutil.STATUS_ZOMBIE) is stays
        with suppress(psutil.NoSuchProcess):
            left.kill()


def test_a_copied_folder_neither_ends_nor_follows_the_job_of_the_original(tmp_path: Path) -> None:
    """A copy of a home has the records of jobs that run: their supervisors write into the original's folders."""
    original = ProcessJobFolders(tmp_path / "home", SERVER)
    with subprocess.Popen(["sleep", "3600"], start_new_session=True) as job:
        key = KEPT[0]
        claim(original, key, job.pid)
        path = original.job_folder(key) / supervisor.STATE_FILE
        own = supervisor.read_stat(job.pid)
        assert own is not None
        folder = path.parent.stat().st_ino
        path.write_text(json.dumps({**json.loads(path.read_text()), "start": own[2], "folder": folder, "marker": ""}))
        assert list_running_jobs(original.root) == [path.parent]
        subprocess.run(["cp", "-a", original.root, tmp_path / "copy"], check=True)
        subprocess.run(["cp", "-a", original.root, tmp_path / "fresh"], check=True)
        assert list_running_jobs(tmp_path / "copy") == []
        ProcessJobFolders(tmp_path / "fresh", "b" * 32).sweep_leftovers()
        assert not (tmp_path / "fresh" / "1" / path.parent.name).exists(), "another server's job"
        assert job.poll() is None
        record = ProcessJobFolders(tmp_path / "copy", SERVER).settle_job_record(key)
        assert record is not None
        assert record.error == COPIED
        job.kill()


def test_nobody_knows_when_a_job_ended_whose_supervisor_was_killed(tmp_path: Path) -> None:
    """The time at which a later server looks is not the end. The last line of its log is a sign of life."""
    folders = ProcessJobFolders(tmp_path, SERVER)
    claim(folders, KEPT[0], pid=1)
    assert folders.find_last_sign(KEPT[0]) is None
    OutputLog(str(folders.log_path(KEPT[0]))).write_output(STDOUT, b"step 1\n")
    os.utime(folders.log_path(KEPT[0]), (100.0, 100.0))
    record = folders.settle_job_record(KEPT[0])
    assert record is not None
    assert (record.exit_code, record.finished_at, record.ran) == (KILLED, None, None)
    assert folders.find_last_sign(KEPT[0]) == datetime.fromtimestamp(100, UTC)
