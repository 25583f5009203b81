"""The shell around a script: it ends with the last process that SIGTERM reached, and otherwise with the script."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from riseml.job_programs.group_shell import wait_for_group
from tests.support.waiting import DEADLINE

SAVES = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("ready", flush=True)
signal.sigwait({signal.SIGTERM})
print("saving", flush=True)
sys.stdin.readline()
print("saved", flush=True)
"""
"""A program that needs a moment to save. The signal waits for `sigwait`; a handler could run just before a `pause`."""

PROGRAM = f"{shlex.quote(sys.executable)} -c {shlex.quote(SAVES)}"
SHELLS = [one for one in (shutil.which("dash"), shutil.which("bash"), shutil.which("busybox")) if one is not None]


LATE = "sleep 600 >/dev/null 3>&-; trap '' TERM;"
"""A process that has not come so far, on a machine with much to do, as to ignore the signal."""


def start(
    script: str,
    shell: str,
    cwd: str | Path = "/",
    reader: tuple[str, ...] = (),
    *,
    late: bool = False,
    **variables: str,
) -> subprocess.Popen[str]:
    """Start a script in a group of its own, as the init of a container does.

    Args:
        script: of the job.
        shell: that runs it, and what is around it.
        cwd: its folder.
        reader: arguments of the reader of event files.
        late: whether SIGTERM meets the reader before it ignores that.
        variables: of the environment.
    """
    _, *rest = wait_for_group(("/bin/sh", "-ec", script), reader)
    if late:
        assert sum("(trap '' TERM;" in word for word in rest) == 1
        rest = [word.replace("(trap '' TERM;", f"({LATE}") for word in rest]
    words = [shell, "sh"] if shell.endswith("busybox") else [shell]
    pipe = subprocess.PIPE
    command, both = [*words, *rest], subprocess.STDOUT
    environment = {**os.environ, **variables}
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=both, text=True, cwd=cwd, env=environment, process_group=0
    )


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "script",
    [f"echo begin\n{PROGRAM} <&3", f"sh -c {shlex.quote(f'{PROGRAM} <&3; echo never')}", f"{PROGRAM} <&3 & wait"],
    ids=["a program", "a shell around it", "in the background"],
)
def test_a_program_may_save_after_sigterm(shell: str, script: str) -> None:
    process = start(f"exec 3<&0\n{script}", shell)
    assert process.stdin is not None
    assert process.stdout is not None
    while process.stdout.readline() != "ready\n":
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGTERM)
    assert process.stdout.readline() == "saving\n"
    process.stdin.write("\n")
    process.stdin.flush()
    rest, _ = process.communicate(timeout=DEADLINE)
    assert (rest, process.returncode) == ("saved\n", 128 + signal.SIGTERM)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("script", "code", "output"),
    [
        ("exit 3", 3, ""),
        ("echo one\nfalse\necho two", 1, "one\n"),
        ("echo one\n# nothing more", 0, "one\n"),
        ("echo out; echo err >&2", 0, "out\nerr\n"),
        ("kill -9 $$", 128 + 9, ""),
    ],
)
def test_without_sigterm_the_end_is_that_of_the_script(shell: str, script: str, code: int, output: str) -> None:
    process = start(script, shell)
    assert (process.communicate(timeout=DEADLINE)[0], process.returncode) == (output, code)


@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_script_leaves_in_the_background_is_named(shell: str) -> None:
    """The main process ends, and the container with it."""
    process = start("for at in 1 2 3 4; do sleep 60$at >/dev/null 2>&1 & echo $!; done", shell)
    *pids, line = process.communicate(timeout=DEADLINE)[0].splitlines()
    for pid in pids:
        os.kill(int(pid), signal.SIGKILL)
    assert process.returncode == 0
    before, _, after = line.partition(": sleep 60")
    assert before == "[riseml: the script has ended, and so ends what it left in the background"
    assert re.fullmatch(r"\d, sleep 60\d, sleep 60\d and 1 more \(a last line `wait` lets that end first\)\]", after)


@pytest.mark.parametrize("shell", SHELLS)
def test_what_ends_by_itself_in_a_moment_is_waited_for(shell: str) -> None:
    """A program that reads what the script has printed gets the end of its input when the script ends."""
    process = start("{ sleep 0.2; echo late; } & echo first", shell)
    assert process.communicate(timeout=DEADLINE)[0] == "first\nlate\n"
    assert process.returncode == 0


def test_a_trap_of_the_script_has_its_say() -> None:
    process = start("trap 'echo trapped; exit 5' TERM; echo ready; while :; do :; done", SHELLS[0])
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGTERM)
    rest, _ = process.communicate(timeout=DEADLINE)
    assert (rest, process.returncode) == ("trapped\n", 5)


WRITES = """
import os, signal, sys
sys.path.append({support!r})
from event_files import make_event
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGTERM}})
with open("tfevents", "wb", 0) as file:
    file.write(make_event(1, loss=0.5))
    if "wait" in sys.argv:
        print("ready", flush=True)
        signal.sigwait({{signal.SIGTERM}})
    file.write(make_event(2, loss=0.25))
"""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("how", ["at once", "stopped", "stopped early", "read before"])
def test_event_files_are_read_to_their_end(shell: str, how: str, tmp_path: Path) -> None:
    """Of a script that ends before its reader begins, of a program that ends after SIGTERM, and of a longer script."""
    program = tmp_path / "writes.py"
    program.write_text(WRITES.format(support=str(Path(__file__).parents[2] / "support")))
    script = f"{shlex.quote(sys.executable)} writes.py {how if how == 'at once' else 'wait'}; exit 3"
    late = how == "stopped early"
    process = start(script, shell, tmp_path, ("1", "", "tensorboard"), late=late, OUTPUT_DIR=str(tmp_path))
    assert process.stdout is not None
    lines = []
    if how != "at once":
        assert process.stdout.readline() == "ready\n"
        if how == "read before":
            lines.append(process.stdout.readline())
        os.killpg(process.pid, signal.SIGTERM)
    lines += process.communicate(timeout=DEADLINE)[0].split("\n")[:-1]
    ends = [line.rstrip().partition(", ")[2] for line in lines]
    assert ends == ['"step": 1, "loss": 0.5}', '"step": 2, "loss": 0.25}']
    assert process.returncode == (3 if how == "at once" else 128 + signal.SIGTERM)
