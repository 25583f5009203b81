"""The rules for all entries of a project together: each path once, nothing below a file or a link, and no link that
leads out of the project, by its own text or through other links.
"""

from __future__ import annotations

import os

from riseml.base.errors import TooLarge, UsageError
from riseml.files.archives.entries import ArchiveEntry, EntryKind

MOST_FILES = 200_000
MOST_FOLDERS = 200_000
LONGEST_NAMES = 32 * 2**20
"""Bytes of all paths of files and folders, and of all targets, of a project together."""

_MOST_WORK = 4_000_000  # parts of paths that are followed to check all links of a project; long paths count more
_FREE_LENGTH = 1024  # characters of a path that count as one part
_FEWER = "name what is not needed in .risemlignore"
_MOST_LINKS = 40  # that Linux follows in one path


class ProjectTree:
    """The entries of one project, added one after the other."""

    def __init__(self) -> None:
        self._kinds: dict[str, EntryKind] = {}  # kind of every path, including folders that have no entry of their own
        self._filled: set[str] = set()  # folders that are not empty
        self._links: dict[str, str] = {}  # targets
        self._count = self._length = 0

    def add_entry(self, entry: ArchiveEntry) -> None:
        """Add the next entry.

        Raises:
            UsageError: its path is there already, or is below a file or a link.
            TooLarge: there are too many entries.
        """
        self._count += 1
        if self._count > MOST_FILES:
            raise TooLarge(f"the project has more than {MOST_FILES:,} files", _FEWER)
        self._add_length(entry.path, entry.target)
        kind = self._kinds.get(entry.path)
        if kind is not None and not (kind is entry.kind is EntryKind.FOLDER):
            raise UsageError(f"{entry.path!r} is there twice", "a project has each path once")
        self._add_folders(entry.path)
        self._kinds[entry.path] = entry.kind
        if entry.kind is EntryKind.LINK:
            self._links[entry.path] = entry.target

    def is_empty(self, folder: str) -> bool:
        """Return whether a folder is empty."""
        return folder not in self._filled

    def check_links(self) -> None:
        """Check every link, once all entries are there.

        Raises:
            UsageError: one leads out of the project.
            TooLarge: too many links lead to other links.
        """
        left = _MOST_WORK
        for path in self._links:
            left -= self._follow(path, left)

    def _add_length(self, *names: str) -> None:
        for name in names:
            self._length += len(name) if name.isascii() else len(os.fsencode(name))
        if self._length > LONGEST_NAMES:
            raise TooLarge(f"the paths of the project have more than {LONGEST_NAMES:,} bytes together", _FEWER)

    def _add_folders(self, path: str) -> None:
        """Note the folders above a path."""
        at = path.rfind("/")
        while at > 0:
            folder = path[:at]
            if folder in self._filled:
                return
            kind = self._kinds.setdefault(folder, EntryKind.FOLDER)
            if kind is not EntryKind.FOLDER:
                noun = "link" if kind is EntryKind.LINK else "file"
                raise UsageError(f"{path!r} is below a {noun}", "a project has each file in a folder of its own")
            self._filled.add(folder)
            self._add_length(folder)
            if len(self._filled) > MOST_FOLDERS:
                raise TooLarge(f"the project has more than {MOST_FOLDERS:,} folders", _FEWER)
            at = folder.rfind("/")

    def _follow(self, path: str, most: int) -> int:
        """Follow a link as Linux does, also through missing parts. Return the number of steps."""
        place: list[str] = []  # the real folder and those above it, each with its whole path
        todo = path.split("/")[::-1]
        links = work = 0
        while todo and links <= _MOST_LINKS:
            part = todo.pop()
            work += 1 + (len(place[-1]) // _FREE_LENGTH if place else 0)
            if work > most:
                raise TooLarge("the links of the project lead to each other too often", "replace some by copies")
            if part == "..":
                if not place:
                    raise UsageError(f"{path!r} leads out of the project", "name it in .risemlignore")
                place.pop()
            elif part not in ("", "."):
                inner = f"{place[-1]}/{part}" if place else part
                target = self._links.get(inner)
                if target is None:
                    place.append(inner)
                else:
                    links += 1
                    todo += target.split("/")[::-1]
        return work
