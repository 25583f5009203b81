"""Files that share their blocks until one of them is written: reflinks of XFS and Btrfs (ioctl_ficlone(2))."""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path

_FICLONE = 0x40049409  # <linux/fs.h>

SMALL_FILE = 64 * 1024
"""Bytes below which a copy takes less time: XFS writes a new file to its disk before it shares the blocks."""


def share_blocks(source: int, target: int) -> bool:
    """Give an empty file the content of another one without copying it.

    Args:
        source: descriptor of the file to read.
        target: descriptor of the file to write.

    Returns:
        False: the file system cannot do it, or the files are on two of them; the target is still empty.
    """
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:  # the errno depends on the file system
        return False
    return True


def can_share_blocks(folder: Path) -> bool:
    """Return True when files below a folder can share blocks.

    Raises:
        OSError: the folder cannot be written.
    """
    with tempfile.TemporaryFile(dir=folder, buffering=0) as source, tempfile.TemporaryFile(dir=folder) as copy:
        source.write(b"content")
        return share_blocks(source.fileno(), copy.fileno())
