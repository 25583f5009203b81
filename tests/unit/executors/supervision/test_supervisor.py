"""The supervisor of a job as a program: its order, its record, what its start costs, and a start that fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import riseml
from riseml.executors.supervision.supervisor import LOG_FILE, STARTED, encode_state, make_command, pack_order
from tests.support.waiting import DEADLINE

PARTS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(PARTS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(VALUES)
def test_a_record_is_json(value: object) -> None:
    assert encode_state(value) == json.dumps(value)


def encode_as_before(order: Mapping[str, object]) -> bytes:
    return json.dumps(order).encode()


@pytest.mark.parametrize("encode", [pack_order, encode_as_before], ids=["this version", "a server of an earlier one"])
def test_a_supervisor_takes_its_order(encode: Callable[[Mapping[str, object]], bytes], tmp_path: Path) -> None:
    """A server that has run since before an upgrade starts the program that is on the disk now."""
    order = {
        "folder": str(tmp_path),
        "workdir": str(tmp_path),
        "command": ("/bin/sh", "-c", 'echo "$NAME"'),
        "environment": {"PATH": os.defpath, "NAME": "Zoë 😀"},
        "identity": {"server": "s", "title": 'a "b"', "marker": "m", "gpus": ("GPU-1",)},
    }
    command = make_command("title")
    done = subprocess.run(command, input=encode(order), capture_output=True, timeout=DEADLINE, check=True)
    assert (done.stdout.decode(), done.stderr) == (STARTED, b"")
    lock = str(tmp_path / "lock")  # the supervisor holds it until it ends
    subprocess.run(["flock", lock, "true"], check=True, timeout=DEADLINE)
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["title"], state["gpus"], state["exit_code"]) == ('a "b"', ["GPU-1"], 0)
    assert (tmp_path / LOG_FILE).read_bytes().endswith("Zoë 😀\n".encode())


def test_a_supervisor_imports_little() -> None:
    """Each job has one: the modules that are absent here took a third of the processor time of a short job."""
    root = str(Path(riseml.__file__).parents[1])
    program = "import sys; sys.path.append(sys.argv[1]); import riseml.executors.supervision.supervisor"
    command = [sys.executable, "-I", "-S", "-c", f"{program}; print(*sys.modules)", root]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE).stdout.split()
    assert {"json", "typing", "re", "subprocess", "riseml.executors.base"} & set(loaded) == set()


START = """
import errno, json, os, sys
from riseml.executors.supervision import supervisor
from riseml.executors.supervision.supervisor import Supervisor

def fail(number):
    raise OSError(number, os.strerror(number))

{fault}
made, answer = supervisor._start_supervised_job(json.loads(sys.argv[1]))
assert answer == "failed: " + {answer!r}, answer
if made is not None:
    made.run_until_end()
"""
NO_PROCESS = "os.fork = lambda: fail(errno.EAGAIN)"
NO_SPACE = """
write, calls = Supervisor._write_state, []
def write_state(self):
    calls.append(self)
    return fail(errno.ENOSPC) if len(calls) == 2 else write(self)
Supervisor._write_state = write_state
"""


def start(folder: Path, fault: str, answer: str) -> None:
    """Start a job that would not end by itself."""
    identity = {"server": "s", "title": "ann.1.train", "marker": "m", "gpus": []}
    order = {"folder": str(folder), "workdir": "/", "command": ["sleep", "600"], "environment": {}}
    program = START.format(fault=fault, answer=answer)
    command = [sys.executable, "-c", program, json.dumps({**order, "identity": identity})]
    done = subprocess.run(command, timeout=DEADLINE, check=False)
    assert done.returncode == 0, (folder / "wrapper.err").read_text()


def test_a_job_for_which_the_machine_has_no_process_can_be_started_again(tmp_path: Path) -> None:
    start(tmp_path, NO_PROCESS, "[Errno 11] Resource temporarily unavailable")
    assert not (tmp_path / "state.json").exists()


def test_a_job_whose_start_cannot_be_noted_ends_with_the_cause(tmp_path: Path) -> None:
    start(tmp_path, NO_SPACE, "[Errno 28] No space left on device")
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["exit_code"], state["error"]) == (137, "its start failed: [Errno 28] No space left on device")
    assert not Path(f"/proc/{state['main']}").exists()
