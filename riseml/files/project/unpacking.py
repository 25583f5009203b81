"""The files of a project written below a folder, by descriptors: no link is followed on the way.

Every folder is opened from the one above it with O_NOFOLLOW, every file is created and never replaced, and links come
last, once it is known where each of them leads. So nothing leaves the folder, whatever the project holds, and whatever
another process puts there meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack

from riseml.base.folders import open_folder
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.project_files import ProjectFiles
from riseml.files.archives.tree import ProjectTree

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags of a file that must not be there yet."""


class OpenFolder:
    """The folder that is written to, and the last folder below it that was opened."""

    def __init__(self, root: int, stack: ExitStack) -> None:
        self._root = self._last = root
        self._path = ""  # path of the last folder
        stack.callback(self._close_last)

    def open_folder(self, path: str) -> int:
        """Return the descriptor of a folder, which is created when it is missing. It is open until the next call."""
        if path != self._path:
            fresh = self._walk(path)
            self._close_last()
            self._last = fresh
            self._path = path
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
        self._last = self._root
        self._path = ""


def unpack_entries(project: ProjectFiles, folders: OpenFolder, paths: Collection[str] | None) -> None:
    """Create folders and files, then links: so no file is written through a link of the archive."""
    tree = ProjectTree()
    links: list[ArchiveEntry] = []
    empty: list[ArchiveEntry] = []
    for entry, content in project.read_files():
        if paths is not None and entry.path not in paths:
            continue
        tree.add_entry(entry)
        match entry.kind:
            case EntryKind.FILE:
                _write_file(entry, content, folders)
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


def _write_file(entry: ArchiveEntry, content: Iterator[bytes], folders: OpenFolder) -> None:
    above, _, name = entry.path.rpartition("/")
    handle = os.open(name, NEW_FILE, 0o600, dir_fd=folders.open_folder(above))
    with open(handle, "wb") as file:
        file.writelines(content)
        file.flush()
        os.fchmod(handle, 0o755 if entry.executable else 0o644)
        os.utime(handle, (entry.mtime, entry.mtime))
