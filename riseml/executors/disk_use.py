"""How full the file system of a folder on this machine is."""

from __future__ import annotations

import os
from pathlib import Path

from riseml.executors.capabilities import DiskUse


def measure_disk(folder: Path) -> DiskUse | None:
    """Return how full the file system of a folder is; None: it does not tell its size.

    Raises:
        OSError: there is no such folder.
    """
    found = os.statvfs(folder)
    used = found.f_blocks - found.f_bfree
    usable = used + found.f_bavail  # without what only root may fill
    return DiskUse(-(-100 * used // usable), str(os.stat(folder).st_dev)) if usable else None
