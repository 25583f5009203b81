"""The program that runs the processes of a job: as each job of a gang runs it, in real processes of this machine."""

from __future__ import annotations

import ast
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from riseml.frameworks.base import join_lines_at_barriers
from riseml.job_programs import launch_ranks, read_program
from riseml.job_programs.rank_meeting import Meeting
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
        self.jobs: list[subprocess.Popen[str]] = []
        (folder / "meet.py").write_text(MEET)

    def start(self, *lines: str) -> None:
        for node in range(self.nodes):
            ranks = [{"RANK": str(2 * node + local)} for local in range(2)]
            more: dict[str, object] = {"address": self.place, "node": node, "nodes": self.nodes} if self.place else {}
            command = launch_ranks(join_lines_at_barriers(lines), 2 * node, ranks, job=f"worker.{node + 1}", **more)
            self.jobs.append(
                subprocess.Popen(
                    ["/bin/sh", "-ec", command],
                    cwd=self.folder,
                    env={"PATH": os.environ["PATH"], "PLACE": self.place or ""},
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
        two.start('trap "touch stopped.$RANK; exit 0" TERM; sleep 600 & touch began.$RANK; wait')
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


def test_values_of_horovod_stay_until_every_rank_of_their_scope_has_read_them() -> None:
    meeting = Meeting(nodes=1, size=2)
    for key in ("rank_0", "0", "rank_1", "1"):
        assert meeting.put(f"/global/{key}", b"address")
    meeting.put("/local_worker-1/0", b"other")
    meeting.drop("/global/1")
    assert len(meeting.values) == 5
    meeting.drop("/global/0")
    assert list(meeting.values) == ["/local_worker-1/0"]
    assert meeting.here == {0, 1}
    meeting.put("/global/0", b"of the next program in this line")
    meeting.drop("/global/1")
    assert "/global/0" in meeting.values


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
