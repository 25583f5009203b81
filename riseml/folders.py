"""Folders that are for one user alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def make_private(folder: Path) -> None:
    """Make the folder if it is missing. In a place where everybody may write (/tmp) somebody else may have been first.

    Raises:
        PermissionError: it is there, and not a folder of this user alone.
        OSError: it cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private(folder):
        raise PermissionError(f"{folder} is not a folder of yours alone")


def is_private(folder: Path) -> bool:
    """True when nobody else may enter it. A link is not followed.

    Raises:
        OSError: it is not there.
    """
    found = folder.lstat()
    return found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
