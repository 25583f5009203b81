"""A start that fails after the supervisor has claimed the folder of its job."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import DEADLINE

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
