"""Hints that the files or the supervisor of a job have changed: none is lost, and no waiting is without an end."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from riseml.executors.process.watch import ChangeCounts, JobWatch
from riseml.executors.supervision.supervisor import LOG_FILE, STATE_FILE
from tests.support.waiting import DEADLINE, wait_for


@pytest.fixture
def watch(tmp_path: Path) -> JobWatch:
    """A watch of one folder with a log."""
    (tmp_path / LOG_FILE).touch()
    made = JobWatch()
    made.add_folder(tmp_path)
    return made


def test_a_line_of_output_wakes_who_waits_for_it(watch: JobWatch, tmp_path: Path) -> None:
    counts = watch.read_counts(tmp_path)
    woken = threading.Event()

    def wait() -> None:
        watch.wait_for_change(tmp_path, counts, DEADLINE)
        woken.set()

    threading.Thread(target=wait, daemon=True).start()
    with (tmp_path / LOG_FILE).open("ab") as log:
        log.write(b"line 1\n")
    assert woken.wait(DEADLINE)
    assert watch.read_counts(tmp_path).log > counts.log


def test_a_state_that_is_replaced_counts_and_a_log_does_not_count_as_a_state(watch: JobWatch, tmp_path: Path) -> None:
    (tmp_path / LOG_FILE).write_bytes(b"line 1\n")
    (tmp_path / "other").write_bytes(b"x")
    wait_for("the line is noticed", lambda: watch.read_counts(tmp_path).log > 0, DEADLINE)
    assert watch.read_counts(tmp_path).state == 0
    seen = watch.wait_for_any_state(-1, 0.0)
    (tmp_path / "state.new").write_text("{}")
    (tmp_path / "state.new").rename(tmp_path / STATE_FILE)
    assert watch.wait_for_any_state(seen, DEADLINE) > seen
    assert watch.read_counts(tmp_path).state == 1


def test_the_end_of_a_supervisor_counts_as_a_change_of_a_state(watch: JobWatch) -> None:
    seen = watch.wait_for_any_state(-1, 0.0)
    with subprocess.Popen(["sleep", "600"]) as supervisor:
        watch.add_process(supervisor.pid)
        watch.add_process(supervisor.pid)
        supervisor.kill()
        assert watch.wait_for_any_state(seen, DEADLINE) == seen + 1


def test_a_folder_that_nobody_watches_has_no_changes_and_waiting_for_it_ends(watch: JobWatch, tmp_path: Path) -> None:
    other = tmp_path / "none"
    assert watch.read_counts(other) == ChangeCounts()
    watch.wait_for_change(other, ChangeCounts(), 0.01)
    watch.forget_folder(other)
    watch.forget_folder(tmp_path)
    assert watch.read_counts(tmp_path) == ChangeCounts()


def test_a_watch_that_is_closed_frees_its_descriptors_and_notices_nothing(watch: JobWatch, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as supervisor:
        watch.add_process(supervisor.pid)
        descriptors = (watch._inotify, watch._closing, *watch._pidfds)
        opened = {Path(f"/proc/self/fd/{number}"): os.readlink(f"/proc/self/fd/{number}") for number in descriptors}
        assert "anon_inode:inotify" in opened.values()
        watch.close()
        watch.close()
        watch.add_folder(tmp_path / "other")
        watch.add_process(supervisor.pid)
        wait_for("they are free", lambda: not any(_leads_to(path, target) for path, target in opened.items()), DEADLINE)
        supervisor.kill()
    assert watch.wait_for_any_state(0, 0.0) == 0


def _leads_to(path: Path, target: str) -> bool:
    try:
        return os.readlink(path) == target
    except FileNotFoundError:
        return False


def test_the_end_of_a_supervisor_is_noticed_without_inotify(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whose other programs use all instances."""
    library = SimpleNamespace(inotify_init1=lambda _flags: -1)
    monkeypatch.setattr("riseml.executors.process.watch.ctypes.CDLL", lambda *_, **__: library)
    watch = JobWatch()
    with subprocess.Popen(["sleep", "600"]) as supervisor:
        watch.add_process(supervisor.pid)
        supervisor.kill()
        assert watch.wait_for_any_state(0, DEADLINE) == 1
