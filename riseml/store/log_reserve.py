"""Space on the disk of SQLite's file that is reserved for kills and for decisions on accepted experiments.

A job whose output is on the same disk can fill it. So the file of the write-ahead log has `_RESERVE` bytes from the
first write on, which no job can take: SQLite writes over them. It begins again at the first byte once it has moved the
log into its file, after about 4 MiB at the latest, unless the file has to grow for that. When less than `_SCARCE` bytes
are free on the disk, other writes are refused, so that they do not use this space up.

File systems that write every change to a new place (btrfs, ZFS) have no such space.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_RESERVE = 8 << 20  # bytes
_SCARCE = 1 << 20  # bytes
_SUPERUSER = 0


def lacks_space(file: Path) -> bool:
    """Return True when the disk of SQLite's file is full, or nearly so."""
    return _count_free(file) < _SCARCE


def keep_reserve(file: Path) -> None:
    """Give the write-ahead log of SQLite's file its size, if there is space; the caller holds the write lock.

    It is not the file on which SQLite has its locks, so that it may be opened and closed.
    """
    log = f"{file}-wal"
    with suppress(OSError):  # the reserve is made with the next write: this one needs none
        if os.stat(log).st_size >= _RESERVE or _count_free(file) < _RESERVE + _SCARCE:
            return
        descriptor = os.open(log, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.posix_fallocate(descriptor, 0, _RESERVE)
        finally:
            os.close(descriptor)


def _count_free(file: Path) -> int:
    """Return the bytes that this process may still write to the disk of a file."""
    disk = os.statvfs(file.parent)
    return disk.f_frsize * (disk.f_bfree if os.geteuid() == _SUPERUSER else disk.f_bavail)
