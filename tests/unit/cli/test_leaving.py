"""The end of a command's process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.waiting import DEADLINE

CALL = "from riseml.cli.main import leave_process\n"


def run_program(text: str, call: str = CALL) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", call + text], capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    return done.returncode, done.stdout, done.stderr


def test_everything_is_printed_before_the_end() -> None:
    text = "import sys\nprint('out', end='')\nsys.stderr.write('err')\nleave_process(3)\nprint('never')"
    assert run_program(text) == (3, "out", "err")


def test_what_was_registered_for_the_end_is_done() -> None:
    assert run_program("import atexit\natexit.register(print, 'done')\nleave_process(0)") == (0, "done\n", "")


def test_a_thread_that_has_to_end_is_waited_for() -> None:
    text = """
import threading
go = threading.Event()
threading.Thread(target=lambda: (go.wait(60), print("thread"))).start()
threading.Thread(target=lambda: (threading.main_thread().join(0.01), go.set()), daemon=True).start()
leave_process(1)
"""
    assert run_program(text) == (1, "thread\n", "")


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_missing_stream_is_not_an_error(closed: str) -> None:
    assert run_program(f"import sys\nsys.{closed} = None\nleave_process(4)")[0] == 4


def test_a_command_that_is_interrupted_before_it_begins_prints_nothing() -> None:
    text = """
import sys
from riseml.cli.entry import run
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "riseml.cli.main":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
run()
"""
    assert run_program(text, call="") == (130, "", "")
