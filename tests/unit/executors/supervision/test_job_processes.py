"""The processes of a job: found and ended by their supervisor, or by what they have inherited from it."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import psutil

from riseml.executors.supervision import supervisor
from riseml.executors.supervision.job_processes import (
    end_supervised_job,
    kill_leftovers,
    list_job_processes,
    signal_supervisor,
)
from riseml.executors.supervision.job_records import SupervisorRecord, load_record
from riseml.executors.supervision.process_tree import MARKER
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.executors.running_jobs import run_job


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_job_ends_with_all_that_it_has_started(tmp_path: Path) -> None:
    with run_job(tmp_path, "sleep 600 & touch begun; exec setsid -w sleep 601") as record:
        wait_for("both run", lambda: len(list_job_processes(record)) >= 2 and (tmp_path / "begun").exists(), DEADLINE)
        pids = [process.pid for process in list_job_processes(record)]
        assert record.pid not in pids
        end_supervised_job(record)
        assert not any(is_alive(pid) for pid in (record.pid, *pids))
    ended = load_record(tmp_path)
    assert ended is not None
    assert ended.has_ended
    assert list_job_processes(ended) == []
    end_supervised_job(ended)


def test_a_suspended_supervisor_is_ended_too(tmp_path: Path) -> None:
    with run_job(tmp_path, "sleep 600") as record:
        assert signal_supervisor(record, signal.SIGSTOP)
        end_supervised_job(record)
        assert not is_alive(record.pid)


def test_another_process_with_the_pid_of_a_supervisor_gets_no_signal() -> None:
    with subprocess.Popen(["sleep", "600"]) as stranger:
        own = supervisor.read_stat(stranger.pid)
        assert own is not None
        record = SupervisorRecord("s", stranger.pid, own[2] + 1, supervisor.read_boot_id())
        assert not signal_supervisor(record, signal.SIGKILL)
        assert not signal_supervisor(replace(record, start=own[2], boot="another"), signal.SIGKILL)
        end_supervised_job(record)
        assert stranger.poll() is None
        assert signal_supervisor(replace(record, start=own[2]), signal.SIGKILL)
        assert stranger.wait(DEADLINE) == -signal.SIGKILL
    assert not signal_supervisor(replace(record, start=own[2]), signal.SIGKILL), "it has ended"


def test_what_a_killed_supervisor_has_left_is_found_by_its_marker() -> None:
    record = SupervisorRecord("s", 2**22 + 1, 9, supervisor.read_boot_id())
    variables = {"PATH": os.defpath}
    with (
        subprocess.Popen(["sleep", "600"], env=variables | {MARKER: "of this test/1"}) as left,
        subprocess.Popen(["sleep", "600"], env=variables | {MARKER: "of this test/10"}) as other,
    ):
        for process in (left, other):
            wait_for("it has its variables", Path(f"/proc/{process.pid}/environ").read_bytes, DEADLINE)
        kill_leftovers(record, "of this test/1")
        assert left.wait(DEADLINE) == -signal.SIGKILL
        assert other.poll() is None
        kill_leftovers(record, "")
        assert other.poll() is None, "no marker is not a marker that all have"
        other.kill()
