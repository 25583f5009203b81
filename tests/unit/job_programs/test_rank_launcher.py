"""The program that runs the processes of a job: as each job of a gang runs it, in real processes of this machine."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from riseml.frameworks.base import join_lines_at_barriers
from riseml.job_programs import launch_ranks, read_program
from riseml.job_programs.rank_launcher import TREE_MARKER, Launcher
from riseml.job_programs.rank_meeting import GONE
from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE, wait_for

MEET = """
import os, urllib.request
def ask(method, path, value=None):
    request = urllib.request.Request("http://" + os.environ["PLACE"] + path, data=value, method=method)
    return urllib.request.urlopen(request).read()
ask("PUT", "/global/" + os.environ["RANK"], b"here")
"""
"""What a process does of `hvd.init()`: it puts its address below its rank."""

SAVE = """
trap 'echo >>told.$RANK; until test -e go; do sleep 0.05; done; touch saved.$RANK; exit 0' TERM
echo $$ >began.$RANK
while :; do sleep 0.05; done
"""
"""A training that saves at SIGTERM. The shell of the rank, its parent, ends at once."""


@pytest.mark.parametrize("name", ["rank_launcher", "jax_exit"])
def test_a_program_runs_on_python_3_7(name: str) -> None:
    tree = ast.parse(read_program(name), feature_version=(3, 7))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= sys.stdlib_module_names | {"http.server"}


class Gang:
    """Jobs of two processes each, as riseml would start them."""

    def __init__(self, folder: Path, place: str | None, nodes: int) -> None:
        self.folder = folder
        self.place = place
        self.nodes = nodes
        self.variables: dict[str, str] = {}
        self.jobs: list[subprocess.Popen[str]] = []
        (folder / "meet.py").write_text(MEET)

    def start(self, *lines: str) -> None:
        for node in range(self.nodes):
            self.start_job(node, *lines)

    def start_job(self, node: int, *lines: str) -> None:
        ranks = [{"RANK": str(2 * node + local)} for local in range(2)]
        more: dict[str, object] = {"address": self.place, "node": node, "nodes": self.nodes} if self.place else {}
        more["patience"] = 0.1
        command = launch_ranks(
            ("/bin/sh", "-ec", join_lines_at_barriers(lines)), 2 * node, ranks, job=f"worker.{node + 1}", **more
        )
        self.jobs.append(
            subprocess.Popen(
                ["/bin/sh", "-ec", command],
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "PLACE": self.place or "", **self.variables},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )

    def finish(self) -> list[tuple[int, str, str]]:
        """Return the exit code and the output of each job."""
        said = [job.communicate(timeout=DEADLINE) for job in self.jobs]
        return [(job.returncode, out, err) for job, (out, err) in zip(self.jobs, said, strict=True)]

    def files(self, pattern: str) -> Sequence[str]:
        return sorted(path.name for path in self.folder.glob(pattern))


@contextmanager
def gang(folder: Path, nodes: int, *, meets: bool = True) -> Iterator[Gang]:
    one = Gang(folder, f"127.0.0.1:{find_free_port()}" if meets else None, nodes)
    try:
        yield one
    finally:
        for job in one.jobs:
            job.kill()
            job.communicate()


def test_every_line_ends_everywhere_before_the_next_begins_in_the_same_shell(tmp_path: Path) -> None:
    with gang(tmp_path, 2) as four:
        lines = ["python3 meet.py; touch first.$RANK; mine=$RANK", "ls first.* | wc -l", "cd /; echo $mine $PWD"]
        four.start(*lines)
        ends = four.finish()
    assert [code for code, _, _ in ends] == [0, 0], ends
    for node, (_, out, _) in enumerate(ends):
        first, second = 2 * node, 2 * node + 1
        wanted = [f"[{rank}] {text}" for rank in (first, second) for text in ("4", f"{rank} /")]
        assert sorted(out.splitlines()) == sorted(wanted)


def test_a_line_that_fails_in_one_process_ends_all_and_is_named(tmp_path: Path) -> None:
    with gang(tmp_path, 2) as four:
        four.start("python3 meet.py", 'if [ "$RANK" = 2 ]; then exit 7; fi; exec sleep 600', "touch reached.$RANK")
        assert four.jobs[1].wait(DEADLINE) == 7
        four.jobs[0].send_signal(signal.SIGTERM)
        (first, _, _), (_, _, said) = four.finish()
    assert first == 128 + signal.SIGTERM
    assert "riseml: rank 2 ended with exit code 7" in said
    assert four.files("reached.*") == []


def test_a_job_that_follows_names_the_first_cause_and_waits_to_be_stopped(tmp_path: Path) -> None:
    broken = 'if [ "$RANK" = 3 ]; then kill -9 $$; fi; until test -e go; do sleep 0.05; done; exit 1'
    with gang(tmp_path, 2) as four:
        four.start("python3 meet.py", broken)
        assert four.jobs[1].wait(DEADLINE) == 137
        (tmp_path / "go").touch()
        code, _, said = four.finish()[0]
    assert code == 1
    assert "ended with exit code 1; first failed worker.2: rank 3 ended with exit code 137" in said


def test_processes_that_are_each_alone_fail(tmp_path: Path) -> None:
    with gang(tmp_path, 2) as four:
        four.start("echo trained")
        assert four.jobs[0].wait(DEADLINE) == 1
        four.jobs[1].send_signal(signal.SIGTERM)
        said = four.finish()[0][2]
    assert "no process called hvd.init() of a Horovod with Gloo: each of the 4 was alone" in said


def test_a_process_that_does_not_meet_the_others_is_named(tmp_path: Path) -> None:
    with gang(tmp_path, 2) as four:
        four.start('[ "$RANK" = 1 ] || python3 meet.py', "touch reached.$RANK")
        assert four.jobs[0].wait(DEADLINE) == 1
        four.jobs[1].send_signal(signal.SIGTERM)
        said = four.finish()[0][2]
    assert "other ranks called hvd.init(), and not 1" in said
    assert four.files("reached.*") == []


def test_sigterm_reaches_every_process_and_nothing_is_left(tmp_path: Path) -> None:
    with gang(tmp_path, 1, meets=False) as two:
        # The child reports its start itself: until then dash still has the trap of its parent there, and drops SIGTERM.
        two.start('trap "touch stopped.$RANK; exit 0" TERM; (touch began.$RANK; exec sleep 600) & wait')
        wait_for("both processes", lambda: len(two.files("began.*")) == 2 or None, DEADLINE)
        two.jobs[0].send_signal(signal.SIGTERM)
        assert two.finish()[0][0] == 128 + signal.SIGTERM
    assert two.files("stopped.*") == ["stopped.0", "stopped.1"]


def test_processes_of_one_job_need_no_meeting(tmp_path: Path) -> None:
    with gang(tmp_path, 1, meets=False) as two:
        two.start("touch first.$RANK", "ls first.* | wc -l; printf unfinished")
        code, out, _ = two.finish()[0]
    assert code == 0
    assert sorted(out.splitlines()) == ["[0] 2", "[0] unfinished", "[1] 2", "[1] unfinished"]


def test_nonsense_at_the_port_of_the_meeting_changes_nothing(tmp_path: Path) -> None:
    with gang(tmp_path, 2) as four:
        four.start("python3 meet.py; touch met.$RANK", "until test -e go; do sleep 0.05; done")
        wait_for("the processes", lambda: len(four.files("met.*")) == 4, DEADLINE)
        host, _, port = str(four.place).partition(":")
        large = b"PUT / HTTP/1.0\r\nContent-Length: 9999999999"
        for said in (b"JOIN 1 HTTP/1.0", b"JOIN 7 HTTP/1.0", b"JOIN x HTTP/1.0", large):
            with socket.create_connection((host, int(port)), DEADLINE) as stranger:
                stranger.sendall(said + b"\r\n\r\n")
                answer = stranger.recv(100)
            assert not answer or answer.startswith(b"HTTP/1.0 413")
        (tmp_path / "go").touch()
        assert four.finish() == [(0, "", ""), (0, "", "")]


def test_a_job_that_has_lost_the_first_one_ends_and_says_why(tmp_path: Path) -> None:
    with gang(tmp_path, 2) as four, socket.create_server(("127.0.0.1", 0)) as first:
        four.place = f"127.0.0.1:{first.getsockname()[1]}"
        four.start_job(1, "touch began.$RANK; exec sleep 600")
        first.settimeout(DEADLINE)
        link, peer = first.accept()
        link.sendall(b'{"go": 0}\n')
        wait_for("both processes", lambda: len(four.files("began.*")) == 2 or None, DEADLINE)
        wait_for("a timer", lambda: is_kept_alive(peer[1]), DEADLINE)
        link.close()
        code, _, said = four.finish()[0]
    assert code == 1
    assert said == f"riseml: lost job 1 of the gang: {GONE}; this job cannot go on without it, and ends\n"


def test_the_first_job_ends_when_it_has_lost_another_one(tmp_path: Path) -> None:
    with gang(tmp_path, 2) as four:
        four.start_job(0, "touch began.$RANK; exec sleep 600")
        other = wait_for("the meeting", lambda: join(str(four.place)), DEADLINE)
        wait_for("both processes", lambda: len(four.files("began.*")) == 2 or None, DEADLINE)
        port = int(str(four.place).rpartition(":")[2])
        wait_for("a timer", lambda: is_kept_alive(port, other.getsockname()[1]), DEADLINE)
        other.close()
        code, _, said = four.finish()[0]
    assert code == 1
    assert f"riseml: lost job 2 of the gang: {GONE}" in said


def join(place: str) -> socket.socket | None:
    """Join a meeting as the second job does."""
    host, _, port = place.partition(":")
    try:
        link = socket.create_connection((host, int(port)), DEADLINE)
    except ConnectionRefusedError:
        return None
    link.sendall(b"JOIN 1 HTTP/1.0\r\n\r\n" + json.dumps({"reached": 0}).encode() + b"\n")
    return link


def is_kept_alive(port: int, peer: int | None = None) -> bool:
    """Return True if the kernel has a timer of SO_KEEPALIVE for a connection, seen from the end with this port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = [(int(row[1][-4:], 16), int(row[2][-4:], 16), row[5]) for row in rows if row[3] == "01"]
    timers = [timer[:2] for here, there, timer in ends if here == port and peer in (None, there)]
    return timers == ["02"]


@pytest.mark.parametrize("tree", [False, True])
def test_what_a_shell_started_has_its_time_to_save_and_gets_sigterm_once(tmp_path: Path, *, tree: bool) -> None:
    (tmp_path / "save.sh").write_text(SAVE)
    with gang(tmp_path, 1, meets=False) as two:
        two.variables = {TREE_MARKER: "a job without a container"} if tree else {}
        two.start("sh save.sh; true")
        wait_for("both processes", lambda: all(map(str.strip, read_all(tmp_path, "began"))) or None, DEADLINE)
        two.jobs[0].send_signal(signal.SIGTERM)
        for pid in map(int, read_all(tmp_path, "began")) if tree else ():
            os.killpg(os.getpgid(pid), signal.SIGTERM)
        wait_for("SIGTERM", lambda: all(read_all(tmp_path, "told")) or None, DEADLINE)
        assert two.jobs[0].poll() is None
        (tmp_path / "go").touch()
        assert two.finish()[0][0] == 128 + signal.SIGTERM
        assert two.files("saved.*") == ["saved.0", "saved.1"]
    assert read_all(tmp_path, "told") == ["\n", "\n"]


def read_all(folder: Path, name: str) -> list[str]:
    """Return what each of two processes has written into its file."""
    paths = [folder / f"{name}.{rank}" for rank in range(2)]
    return [path.read_text() if path.exists() else "" for path in paths]


def test_a_module_of_the_project_does_not_change_the_launcher(tmp_path: Path) -> None:
    for name in ("queue", "json", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not the module of Python')")
    with gang(tmp_path, 1, meets=False) as two:
        two.variables = {"PYTHONPATH": ".", "PYTHONUNBUFFERED": "1"}
        two.start("echo $PYTHONPATH $PYTHONUNBUFFERED")
        code, out, err = two.finish()[0]
    assert (code, sorted(out.splitlines()), err) == (0, ["[0] . 1", "[1] . 1"], "")


@pytest.mark.parametrize("start", ["exec sh print.sh", "setsid sh print.sh & exec sleep 600"])
def test_a_job_keeps_its_exit_code_while_the_output_of_another_rank_is_copied(tmp_path: Path, start: str) -> None:
    """A process of rank 1 ignores SIGTERM. One outside of the group of its rank even outlives SIGKILL."""
    (tmp_path / "print.sh").write_text(f"trap '' TERM; touch began; while :; do echo {'x' * 9000}; done")
    script = f'[ "$RANK" = 1 ] || {{ until [ -e began ]; do sleep 0.05; done; exit 3; }}; {start}'
    order = json.dumps({"command": ["/bin/sh", "-ec", script], "first": 0, "ranks": [{"RANK": "0"}, {"RANK": "1"}]})
    program = read_program("rank_launcher").replace("END_TIME = 2.0", "END_TIME = 0.2")
    command = [sys.executable, "-IS", "-c", program, order]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=DEADLINE, check=False)
    assert (done.returncode, done.stderr) == (3, b"riseml: rank 0 ended with exit code 3\n")


def test_what_a_rank_printed_before_it_was_killed_is_copied() -> None:
    launcher, killed, copied = Launcher({"ranks": [{}, {}]}), threading.Event(), []
    shell = subprocess.Popen(["sleep", "600"], start_new_session=True)
    slow = threading.Thread(target=lambda: copied.append((shell.wait(), killed.wait(0.1))))
    slow.start()
    launcher.failure, launcher.ranks, launcher.copies = (0, 3), {1: shell}, {1: [slow]}
    launcher.signal_ranks(signal.SIGTERM)
    launcher.end_ranks()
    assert copied == [(-signal.SIGTERM, False)]
