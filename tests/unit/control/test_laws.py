"""The laws of DESIGN section 4 over 10,000 random histories, on two cores, and over some hundred more with the real
store behind the loop; `make soak` goes on with others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
EACH = 5000
STORED = 100
HISTORIES = ("-m", "tests.unit.control.histories", "--count", str(EACH), "--stored", str(STORED))
PATIENCE = 900  # seconds; it takes about a tenth of that


def test_ten_thousand_histories() -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, *HISTORIES, "--seed", str(seed)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for seed in (1, 2)
    ]
    try:
        for run in runs:
            out, _ = run.communicate(timeout=PATIENCE)
            assert run.returncode == 0, out[-6000:]
    finally:
        for run in runs:
            run.kill()
            run.communicate()
