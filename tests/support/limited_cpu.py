"""Python programs that may not use much processor time."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path


def run_with_limit(program: str, folder: Path, seconds: int) -> str:
    """Run Python, with a folder as its argument, for at most so many seconds of CPU; return what it prints."""
    process = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),
    )
    assert process.returncode == 0, process.stderr
    return process.stdout
