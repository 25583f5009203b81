"""Remove folders with everything in them, and fill new folders that appear complete or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from riseml.base.errors import EngineError
from riseml.job_programs.folder_removal import RemovalTally, remove_entry


def remove_tree(folder: Path) -> None:
    """Remove a folder, however deep, also when its files or folders are read-only.

    Raises:
        EngineError: something in it cannot be removed.
    """
    try:
        remove_entry(None, os.fsencode(folder), RemovalTally(), force=True)
    except FileNotFoundError:
        return
    except OSError as error:
        raise EngineError(f"{folder} cannot be removed: {error.strerror}", "remove it by hand") from error


@contextlib.contextmanager
def fill_new_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder beside `target`; rename it to `target` at the end of the block. An error removes it, and so
    does a target that another thread or process has filled meanwhile: the first one stays.

    Example:
        with fill_new_folder(folder / "code") as fresh:
            unpack_project(project, fresh)

    Raises:
        OSError: there is no room, or the folder around it cannot be written.
    """
    fresh = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}."))
    try:
        yield fresh
        if not _rename_to_new(fresh, target):
            remove_tree(fresh)
    except BaseException:
        with contextlib.suppress(EngineError):  # the error of the block says more
            remove_tree(fresh)
        raise


def _rename_to_new(folder: Path, target: Path) -> bool:
    """Rename a folder, and return False when there is a folder with files at its new place (rename(2))."""
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True
