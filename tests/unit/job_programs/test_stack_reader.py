"""Tests of riseml.job_programs.stack_reader: real processes, and bounds that a job cannot pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.executors.job_stacks import StackRequest, make_reader_command
from riseml.executors.this_machine.spy import find_spy
from riseml.job_programs.process_facts import MOST_DUMP
from riseml.job_programs.stack_reader import list_job, run_bounded

PROGRAM = """
import sys, threading

def hold(secret):
    print("begun", flush=True)
    sys.stdin.read()

hold("hunter2")
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A shell with a Python program below it, which runs until its input ends."""
    (tmp_path / "train.py").write_text(PROGRAM)
    command = ["/bin/sh", "-c", f"{sys.executable} train.py; :"]
    pipe = subprocess.PIPE
    environ = {**os.environ, "RANK": "2"}
    with subprocess.Popen(command, cwd=tmp_path, env=environ, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield process
        process.communicate()


def read(root: int, **wanted: bool) -> list[dict[str, object]]:
    """Return what the program prints about the processes below one."""
    command = make_reader_command(sys.executable, str(find_spy()), root, StackRequest(**wanted))
    rows: list[dict[str, object]] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return rows


def test_it_prints_the_stacks_of_a_running_program_which_goes_on(job: subprocess.Popen[str]) -> None:
    (row,) = read(job.pid)
    assert (row["parent"], row["rank"], row["trouble"]) == (job.pid, 2, "")
    (thread,) = json.loads(str(row["dump"]))
    assert [(frame["name"], frame["line"]) for frame in thread["frames"]] == [("hold", 6), ("<module>", 8)]
    assert "hunter2" not in str(row)
    (row,) = read(job.pid, native=True, variables=True)
    assert "hunter2" in str(row["dump"])
    assert job.poll() is None


def test_a_program_without_python_has_no_stacks_and_no_trouble() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "cat; :"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin is not None and shell.stdout is not None
        shell.stdin.write(b"x\n")
        shell.stdin.flush()
        assert shell.stdout.readline() == b"x\n"  # cat has begun
        (row,) = read(shell.pid)
        assert (row["command"], row["dump"], row["trouble"], row["rank"]) == ("cat", "", "", None)


def test_riseml_hides_what_reads_the_stacks() -> None:
    assert os.getpid() not in {row["pid"] for row in list_job(os.getppid())}


@pytest.mark.parametrize(
    ("script", "seconds", "words"),
    [
        ("exec sleep 600", 0.5, "could not be read in time"),
        ("exec sleep 600", -1.0, "no time left"),
        ("exec cat /dev/zero", 60.0, "larger than 4 MiB"),
        ("exec cat /dev/zero >&2", 60.0, "larger than 4 MiB"),
    ],
)
def test_a_program_that_takes_too_long_or_prints_too_much_is_ended(script: str, seconds: float, words: str) -> None:
    code, output, errors = run_bounded(["/bin/sh", "-c", script], time.monotonic() + seconds)
    assert (code, output) == (None, b"")
    assert words in errors


def test_an_answer_up_to_the_bound_is_whole() -> None:
    code, output, _ = run_bounded(["head", "-c", str(MOST_DUMP), "/dev/zero"], time.monotonic() + 60)
    assert (code, len(output)) == (0, MOST_DUMP)
