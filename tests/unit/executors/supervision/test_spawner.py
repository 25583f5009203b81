"""Supervisors that a spawner forks: nobody can tell them from those that a new Python has started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from riseml.executors.supervision import spawner, start
from riseml.executors.supervision.job_processes import end_supervised_job
from riseml.executors.supervision.job_records import SupervisorRecord, load_record
from riseml.executors.supervision.process_tree import MARKER
from riseml.executors.supervision.start import SupervisorStarter, start_supervisor
from riseml.executors.supervision.supervisor import make_command
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.executors.supervision.test_start import make_order

Start = Callable[[str, dict[str, object], str], None]
TITLE = "ann.4.train"
UNTIL_TOLD = ("/bin/sh", "-c", "until [ -e go ]; do sleep 0.05; done")
KEPT = {  # of /proc/PID/status
    *("Name", "Umask", "Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "Threads", "SigBlk", "SigIgn", "SigCgt"),
    *("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "Cpus_allowed"),
}


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[SupervisorStarter]:
    starter = SupervisorStarter()
    yield starter
    starter.close()
    for state in tmp_path.rglob("state.json"):  # a test that has failed leaves its jobs
        record = load_record(state.parent)
        if record is not None and not record.has_ended:
            end_supervised_job(record)


def start_job(
    start: Start, folder: Path, title: str = TITLE, command: tuple[str, ...] = UNTIL_TOLD
) -> SupervisorRecord:
    folder.mkdir(exist_ok=True)
    start(title, make_order(folder, command), f"m{folder}")
    record = load_record(folder)
    assert record is not None
    assert record.started_at is not None
    return record


def end_job(folder: Path) -> SupervisorRecord:
    (folder / "go").touch()
    subprocess.run(["flock", folder / "lock", "true"], check=True, timeout=DEADLINE)
    record = load_record(folder)
    assert record is not None
    return record


def read_state(folder: Path) -> bytes:
    path = folder / "state.json"
    return path.read_bytes() if path.exists() else b""


def find_spawners() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if spawner.PROGRAM in child.cmdline()]


def read_process(pid: int) -> dict[str, object]:
    """Return what the kernel says of a process, without what differs between any two of them."""
    proc = Path(f"/proc/{pid}")
    status = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines())
    links = [os.readlink(proc / "fd" / name) for name in os.listdir(proc / "fd")]
    return {
        "words": (proc / "cmdline").read_bytes().rstrip(b"\0").decode().split("\0"),
        "variables": sorted((proc / "environ").read_bytes().rstrip(b"\0").decode().split("\0")),
        "files": {link.partition(":[")[0].rpartition("/")[2] for link in links},
        "status": {name: value for name, value in status.items() if name in KEPT},
        "limits": (proc / "limits").read_text(),
        "group": (proc / "cgroup").read_text(),
        "score": (proc / "oom_score_adj").read_text(),
        "folder": os.readlink(proc / "cwd"),
        "program": os.readlink(proc / "exe"),
        "session": os.getsid(pid) == os.getpgid(pid) == pid,
        "parent": psutil.Process(pid).ppid(),
    }


def test_a_forked_supervisor_is_as_one_of_a_new_python(starter: SupervisorStarter, tmp_path: Path) -> None:
    kinds = (("new", start_supervisor), ("fork", starter.start))
    records = [start_job(each, tmp_path / name, command=("/bin/sleep", "600")) for name, each in kinds]
    new, forked = (read_process(record.pid) for record in records)
    for process, name in ((new, "new"), (forked, "fork")):
        assert process["words"] == make_command(TITLE)
        assert process.pop("variables") == sorted([f"PATH={os.defpath}", f"{MARKER}=m{tmp_path / name}"])
    assert forked == new
    assert forked["parent"] not in (os.getpid(), *[process.pid for process in find_spawners()])
    jobs = [read_process(record.main) for record in records]
    assert jobs[0]["words"] == ["/bin/sleep", "600"]
    assert [job.pop("folder") for job in jobs] == [str(tmp_path / "new"), str(tmp_path / "fork")]
    assert [job.pop("parent") for job in jobs] == [record.pid for record in records]
    assert jobs[0] == jobs[1]
    assert len(find_spawners()) == 1
    for record in records:
        end_supervised_job(record)


def test_a_job_starts_once_however_often_and_by_whomever_it_is_started(
    starter: SupervisorStarter, tmp_path: Path
) -> None:
    first = start_job(starter.start, tmp_path)
    for again in (starter.start, start_supervisor):
        assert start_job(again, tmp_path) == first
    end_job(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_the_next_job_starts_when_the_spawner_has_ended_or_stands_still(
    number: int, starter: SupervisorStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = start_job(starter.start, tmp_path / "before")
    (process,) = find_spawners()
    process.send_signal(number)
    state = psutil.STATUS_STOPPED if number == signal.SIGSTOP else psutil.STATUS_ZOMBIE
    wait_for("it got the signal", lambda: process.status() == state, DEADLINE)
    with monkeypatch.context() as short:
        if number == signal.SIGSTOP:
            short.setattr(start, "_FORK_TIMEOUT", 0.5)
            short.setattr(start, "_END_TIMEOUT", 0.1)
        start_job(starter.start, tmp_path / "next")
    start_job(starter.start, tmp_path / "last")
    assert len(find_spawners()) == 1
    assert process not in find_spawners()
    assert load_record(tmp_path / "before") == before
    assert [end_job(tmp_path / name).exit_code for name in ("before", "next", "last")] == [0, 0, 0]


def test_a_job_goes_on_when_nobody_reads_the_answer(
    starter: SupervisorStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may be killed at any moment of a start."""
    monkeypatch.setattr(start, "_FORK_TIMEOUT", 0.0)
    monkeypatch.setattr(start, "start_supervisor", lambda *_: None)
    starter.start(TITLE, make_order(tmp_path, UNTIL_TOLD), f"m{tmp_path}")
    wait_for("it has begun", lambda: b"started_at" in read_state(tmp_path), DEADLINE)
    assert end_job(tmp_path).exit_code == 0


@pytest.mark.parametrize("title", ["long " * 200, "very long " * 1000], ids=["more than the space", "no message"])
def test_a_title_that_a_fork_cannot_show_needs_a_new_python(
    title: str, starter: SupervisorStarter, tmp_path: Path
) -> None:
    record = start_job(starter.start, tmp_path, title)
    assert psutil.Process(record.pid).cmdline() == make_command(title)
    end_job(tmp_path)


def test_a_python_without_files_in_memory_starts_another_one(
    starter: SupervisorStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    start_job(starter.start, tmp_path)
    assert find_spawners() == []
    assert end_job(tmp_path).exit_code == 0


def test_a_long_order_and_what_fails_pass_through_a_spawner(starter: SupervisorStarter, tmp_path: Path) -> None:
    script = f": {'x' * 100_000}; exit 3"  # longer than a pipe, and shorter than an argument may be
    start_job(starter.start, tmp_path / "long", command=("/bin/sh", "-c", script))
    assert end_job(tmp_path / "long").exit_code == 3
    (tmp_path / "none").mkdir()
    starter.start(TITLE, make_order(tmp_path / "none", ("/no/such/program",)), f"m{tmp_path}")
    state = json.loads((tmp_path / "none" / "state.json").read_text())
    assert state["error"] == "No such file or directory: /no/such/program"


def test_jobs_go_on_when_what_started_them_is_killed(tmp_path: Path) -> None:
    """The spawner ends with its server, and no process of a job is below the server."""
    program = "\n".join(
        (
            "import json, os, signal, sys",
            "from riseml.executors.supervision.start import SupervisorStarter",
            "SupervisorStarter().start('ann.4.train', json.loads(sys.argv[1]), sys.argv[1])",
            "print('started', flush=True)",
            "signal.pause()",
        )
    )
    order = json.dumps(make_order(tmp_path, UNTIL_TOLD))
    server = subprocess.Popen([sys.executable, "-c", program, order], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == "started\n"
    record = load_record(tmp_path)
    assert record is not None
    below = psutil.Process(server.pid).children(recursive=True)
    assert record.pid not in [process.pid for process in below]
    assert len(below) == 1
    server.kill()
    server.communicate()
    psutil.wait_procs(below, DEADLINE)
    assert not below[0].is_running()
    assert psutil.pid_exists(record.pid)
    assert end_job(tmp_path).exit_code == 0
