"""The memory of a process."""

from __future__ import annotations

import re
from pathlib import Path


def read_peak_memory(process: int) -> int:
    """Return the most bytes that a process has had in memory."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024
