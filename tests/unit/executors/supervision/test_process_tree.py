"""The processes below a process: which there are, how they are signalled, and how the user reads of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.executors.supervision.process_tree import (
    describe_left,
    has_raised_score,
    list_descendants,
    read_environment,
    send_signal,
)
from tests.support.waiting import DEADLINE, wait_for

PROGRAM = "import sys\nfrom riseml.executors.supervision import process_tree\n"


@pytest.fixture
def shell() -> Iterator[subprocess.Popen[bytes]]:
    """A shell with a child that has a child of its own; it has printed that they run."""
    script = "(sleep 600 & echo; wait) & read go"
    with subprocess.Popen(
        ["/bin/sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"NAME": "a=b", "PATH": os.defpath},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        for pid in (*list_descendants(process.pid), process.pid):
            send_signal(pid, signal.SIGKILL)


def test_children_of_children_are_below_a_process(shell: subprocess.Popen[bytes]) -> None:
    below = list_descendants(shell.pid)
    assert len(below) == 2
    assert set(below) < set(list_descendants(os.getpid()))
    assert list_descendants(below[-1]) == []


def test_a_process_that_has_ended_counts_as_signalled(shell: subprocess.Popen[bytes]) -> None:
    assert send_signal(shell.pid, signal.SIGKILL)
    shell.wait()
    assert send_signal(shell.pid, signal.SIGTERM)


def test_the_variables_of_a_process_are_those_of_its_start(shell: subprocess.Popen[bytes]) -> None:
    assert read_environment(shell.pid) == {"NAME": "a=b", "PATH": os.defpath}
    with pytest.raises(OSError, match="No such file"):
        read_environment(2**22 + 1)


def test_a_process_that_replaces_its_program_has_its_variables(tmp_path: Path) -> None:
    chain = tmp_path / "chain"
    chain.write_text('#!/bin/sh\nexec "$0"\n')
    chain.chmod(0o700)
    variables = {"NAME": "a=b", "PATH": os.defpath}
    with subprocess.Popen([chain], env=variables) as process:
        read = [read_environment(process.pid) for _ in range(3000)]
        process.kill()
    assert [shown for shown in read if shown.get("NAME") != "a=b"] == []


def test_a_process_without_variables_has_none() -> None:
    with subprocess.Popen(["/bin/sleep", "600"], env={}) as process:
        assert read_environment(process.pid) == {}
        process.kill()


def test_a_job_is_killed_before_others_and_so_are_its_children() -> None:
    program = PROGRAM + "process_tree.raise_oom_score()\nimport subprocess\n"
    program += (
        "child = subprocess.Popen(['sleep', '600'])\nprint(process_tree.has_raised_score(child.pid))\nchild.kill()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    assert not has_raised_score(2**22 + 1), "it is not there"


def test_a_process_starts_with_the_usual_handling_of_signals() -> None:
    program = PROGRAM + "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    program += "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nprocess_tree.reset_signals()\n"
    program += "print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True set()\n"


def test_the_user_reads_which_programs_a_script_has_left_behind() -> None:
    programs = [subprocess.Popen(["sleep", str(600 + number)]) for number in range(5)]
    for program in programs:
        wait_for("it has its name", Path(f"/proc/{program.pid}/cmdline").read_bytes, DEADLINE)
    line = describe_left([program.pid for program in programs]).decode()
    for program in programs:
        program.kill()
        program.wait()
    assert "left in the background: sleep 600, sleep 601, sleep 602 and 2 more (" in line
    assert line.endswith("\n")
    assert describe_left([program.pid for program in programs]) == b"", "all have ended"
