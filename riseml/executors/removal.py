"""Folders removed with all that is in them, and new ones that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from riseml.errors import EngineError


def remove_tree(folder: Path) -> None:
    """Remove a folder, also when its files or folders are read-only.

    Raises:
        EngineError: something in it cannot be removed.
    """
    try:
        if sys.version_info >= (3, 12):
            shutil.rmtree(folder, onexc=_remove_read_only)
        else:
            shutil.rmtree(folder, onerror=_remove_read_only)
    except FileNotFoundError:
        return
    except OSError as error:
        raise EngineError(f"{folder} cannot be removed: {error.strerror}", "remove it by hand") from error


@contextlib.contextmanager
def fill_new_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder beside `target`, which has its name from the end of the block on. An error removes it.

    Example:
        with fill_new_folder(folder / "code") as fresh:
            unpack_project(project, fresh)

    Raises:
        OSError: there is no room, or the folder around it cannot be written.
    """
    fresh = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}."))
    try:
        yield fresh
        fresh.rename(target)
    except BaseException:
        with contextlib.suppress(EngineError):  # the error of the block says more
            remove_tree(fresh)
        raise


def _remove_read_only(_function: Callable[..., Any], path: str, _error: Any) -> None:
    """Remove what is in a folder that a job made read-only."""
    for place in (os.path.dirname(path), path):
        with contextlib.suppress(OSError):
            os.chmod(place, os.stat(place, follow_symlinks=False).st_mode | stat.S_IRWXU, follow_symlinks=False)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
