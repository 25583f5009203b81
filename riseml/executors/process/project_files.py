"""A project archive unpacked into a folder of this machine, by descriptors: no link is followed on the way.

Every folder is opened from the one above it with O_NOFOLLOW, every file is created and never replaced, and links come
last, once it is known where each of them leads. So nothing leaves the folder, whatever the archive holds, and whatever
another process puts there meanwhile.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from riseml.archives.entries import ArchiveEntry, EntryKind
from riseml.archives.reader import read_content, read_entries
from riseml.archives.tree import ProjectTree
from riseml.errors import EngineError, UsageError
from riseml.folders import open_folder

_PROBLEM = "the project's files cannot be unpacked"
_COPIED_AT_ONCE = 1 << 20  # bytes
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOREIGN = frozenset({errno.EEXIST, errno.ENOTDIR, errno.ELOOP})
"""Errors of a path at which there is something that this module did not put there."""


def unpack_project(archive: Path, target: Path, wanted: Collection[str] | None = None) -> None:
    """Unpack a project archive into an empty folder.

    Args:
        archive: a tar of files, folders and symbolic links.
        target: the folder; it exists.
        wanted: paths of the entries to unpack; None: all.

    Raises:
        EngineError: the archive is broken, or an entry leads out of the folder; part of it may be unpacked.
        OSError: the folder cannot be written.
    """
    with ExitStack() as stack:
        file = stack.enter_context(archive.open("rb"))
        root = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, root)
        try:
            _unpack_entries(file, _OpenFolder(root, stack), wanted)
        except UsageError as error:
            raise EngineError(f"{_PROBLEM}: {error.message}", permanent=True) from error
        except OSError as error:
            if error.errno not in _FOREIGN:
                raise
            raise EngineError(f"{_PROBLEM}: {error.filename} is there already", permanent=True) from error


def copy_made_files(source: Path, target: Path) -> None:
    """Copy what install steps made in their project folder into an unpacked project, as the layers of an image do.

    What the project has itself stays as it is. Links are copied as links, and none is followed.

    Args:
        source: the folder in which the steps ran.
        target: the unpacked project.

    Raises:
        OSError: a file cannot be copied.
    """
    if not source.is_dir():  # an environment without steps has none
        return
    with ExitStack() as stack:
        root = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, root)
        folders = _OpenFolder(root, stack)
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
                    _copy_made_file(name, at, into)


def _copy_made_file(name: str, source: int, target: int) -> None:
    """Copy a file or a link from one open folder to another; folders, and what is neither, are left out."""
    found = os.stat(name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    elif stat.S_ISREG(found.st_mode):
        with (
            open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source), "rb") as made,
            open(os.open(name, _NEW_FILE, 0o600, dir_fd=target), "wb") as copy,
        ):
            shutil.copyfileobj(made, copy, _COPIED_AT_ONCE)
            copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(found.st_mode) & 0o777)
            os.utime(copy.fileno(), (found.st_mtime, found.st_mtime))


class _OpenFolder:
    """The folder that is written to, and the last folder below it that was opened."""

    def __init__(self, root: int, stack: ExitStack) -> None:
        self._root = self._last = root
        self._path = ""  # of the last folder
        stack.callback(self._close_last)

    def open_folder(self, path: str) -> int:
        """Return the descriptor of a folder, which is created when it is missing. It is open until the next call."""
        if path != self._path:
            fresh = self._walk(path)
            self._close_last()
            self._last, self._path = fresh, path
        return self._last

    def _walk(self, path: str) -> int:
        at = os.dup(self._root)
        for part in path.split("/") if path else ():
            try:
                inner = open_folder(at, part, 0o755)
            finally:
                os.close(at)
            at = inner
        return at

    def _close_last(self) -> None:
        if self._last != self._root:
            os.close(self._last)
        self._last, self._path = self._root, ""


def _unpack_entries(file: BinaryIO, folders: _OpenFolder, wanted: Collection[str] | None) -> None:
    """Create folders and files, then links: so no file is written through a link of the archive."""
    tree = ProjectTree()
    links: list[ArchiveEntry] = []
    empty: list[ArchiveEntry] = []
    for entry, at in read_entries(file):
        if wanted is not None and entry.path not in wanted:
            continue
        tree.add_entry(entry)
        match entry.kind:
            case EntryKind.FILE:
                _write_file(file, at, entry, folders)
            case EntryKind.LINK:
                links.append(entry)
            case EntryKind.FOLDER:
                folders.open_folder(entry.path)
                empty.append(entry)
    tree.check_links()
    for link in links:
        above, _, name = link.path.rpartition("/")
        os.symlink(link.target, name, dir_fd=folders.open_folder(above))
    for entry in empty:
        os.utime(folders.open_folder(entry.path), (entry.mtime, entry.mtime))


def _write_file(source: BinaryIO, at: int, entry: ArchiveEntry, folders: _OpenFolder) -> None:
    above, _, name = entry.path.rpartition("/")
    handle = os.open(name, _NEW_FILE, 0o600, dir_fd=folders.open_folder(above))
    with open(handle, "wb") as file:
        file.writelines(read_content(source, at, entry.size))
        file.flush()
        os.fchmod(handle, 0o755 if entry.executable else 0o644)
        os.utime(handle, (entry.mtime, entry.mtime))
