"""Private folders: only one user may enter them."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def make_private(folder: Path) -> None:
    """Create the folder if it is missing, and check that it is private.

    In a folder such as /tmp, where every user may write, another user may have created it first.

    Raises:
        PermissionError: the path exists and is not a private folder of this user.
        OSError: the folder cannot be created.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private(folder):
        raise PermissionError(f"{folder} is not a folder of yours alone")


def is_private(folder: Path) -> bool:
    """Return True when only this user may enter the folder. A link is not followed.

    Raises:
        OSError: the folder does not exist.
    """
    found = folder.lstat()
    return found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
