"""Programs that call the command line in a process of their own."""

from __future__ import annotations

import subprocess
import sys

from tests.support.waiting import DEADLINE

CALL = "from riseml.cli.main import leave_process\n"


def run_program(text: str, call: str = CALL) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", call + text], capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    return done.returncode, done.stdout, done.stderr
