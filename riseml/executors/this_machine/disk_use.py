"""How full the file system of a folder on this machine is, and what says that a disk is full."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from riseml.base.errors import DiskFull
from riseml.executors.capabilities import DiskUse

FULL_PERCENT = 100
"""Per cent of a disk, rounded up, from which on it counts as full when something fails on it: more than 99."""

FULL_DISK_HINT = "its disk was full: free some space there"
"""What follows the failure of a build that has filled its disk."""

_FULL_LINE = re.compile(
    r"no ?space ?left|\bENOSPC\b|\[Errno 28\]|\(os error 28\)"  # libc; npm; Python; Rust; conda writes it as one word
    r"|not enough (free |disk )*space|don't have enough free space"  # pip's and apt's own words
    r"|output are lost, the disk was full\]",  # a log on the same disk (`output_log`)
    re.IGNORECASE,
)


def measure_disk(folder: Path) -> DiskUse | None:
    """Return how full the file system of a folder is; None: it does not tell its size.

    Raises:
        OSError: there is no such folder.
    """
    file_system = os.statvfs(folder)
    used = file_system.f_blocks - file_system.f_bfree
    usable = used + file_system.f_bavail  # without what only root may fill
    return DiskUse(-(-100 * used // usable), str(os.stat(folder).st_dev)) if usable else None


def find_full_disk(error: BaseException) -> DiskFull | OSError | None:
    """Return the error that says that a disk has no room: this one, or one that caused it; None: there is none."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, DiskFull) or (isinstance(cause, OSError) and cause.errno == errno.ENOSPC):
            return cause
        cause = cause.__cause__
    return None


def says_full_disk(line: str) -> bool:
    """Return True when a line of a build's output says that a disk has no room. It may be a small disk of the step
    alone, such as /dev/shm."""
    return _FULL_LINE.search(line) is not None
