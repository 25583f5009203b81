"""Files of a project written into a folder of this machine, by descriptors: no link is followed on the way.

`riseml.files.project.unpacking` does it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Collection
from contextlib import ExitStack, suppress
from pathlib import Path

from riseml.base.errors import EngineError, UsageError
from riseml.executors.environments.shared_blocks import SMALL_FILE, share_blocks
from riseml.files.archives.project_files import ProjectFiles
from riseml.files.project.unpacking import NEW_FILE, OpenFolder, unpack_entries

_PROBLEM = "the project's files cannot be unpacked"
_COPIED_AT_ONCE = 1 << 20  # bytes
_FOREIGN = frozenset({errno.EEXIST, errno.ENOTDIR, errno.ELOOP})
"""Errors of a path with an entry that this module did not create."""


def unpack_project(project: ProjectFiles, target: Path, paths: Collection[str] | None = None) -> None:
    """Write a project's files into an empty folder.

    Args:
        project: its files, folders and symbolic links.
        target: the folder; it exists.
        paths: those of the entries to unpack; None: all.

    Raises:
        EngineError: a file is damaged, or an entry leads out of the folder; part of it may be unpacked.
        OSError: the folder cannot be written.
    """
    with ExitStack() as stack:
        root = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, root)
        try:
            unpack_entries(project, OpenFolder(root, stack), paths)
        except UsageError as error:
            raise EngineError(f"{_PROBLEM}: {error.message}", permanent=True) from error
        except OSError as error:
            if error.errno not in _FOREIGN:
                raise
            raise EngineError(f"{_PROBLEM}: {error.filename} is there already", permanent=True) from error


def copy_files(source: Path, target: Path) -> None:
    """Copy files, folders and links into a folder without replacing existing ones, as in the layers of an image.

    Large files share their blocks with the source where the file system can. Links are copied as links, and none is
    followed.

    Args:
        source: what install steps made, or an unpacked project; it may be missing.
        target: the folder; it exists.

    Raises:
        OSError: a file cannot be copied.
    """
    if not source.is_dir():  # an environment without steps has none
        return
    with ExitStack() as stack:
        root = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, root)
        folders = OpenFolder(root, stack)
        for path, inner, names, at in os.fwalk(source):
            below = os.path.relpath(path, source)
            try:
                into = folders.open_folder("" if below == os.curdir else below)
            except OSError as error:
                if error.errno not in _FOREIGN:
                    raise
                inner.clear()  # the project has a file or a link of this name
                continue
            for name in [*names, *inner]:
                with suppress(FileExistsError):
                    _copy_file(name, at, into)
            if not (names or inner):  # a project names its empty folders, with their times
                _copy_times(os.fstat(at), into)


def _copy_file(name: str, source: int, target: int) -> None:
    """Copy a file or a link from one open folder to another; skip everything else."""
    status = os.stat(name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    elif stat.S_ISREG(status.st_mode):
        with (
            open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source), "rb") as original,
            open(os.open(name, NEW_FILE, 0o600, dir_fd=target), "wb") as copy,
        ):
            if status.st_size < SMALL_FILE or not share_blocks(original.fileno(), copy.fileno()):
                shutil.copyfileobj(original, copy, _COPIED_AT_ONCE)
                copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(status.st_mode) & 0o777)
            _copy_times(status, copy.fileno())


def _copy_times(status: os.stat_result, target: int) -> None:
    os.utime(target, ns=(status.st_mtime_ns, status.st_mtime_ns))
