"""What a project archive holds: files, symbolic links and folders, with the few fields that count."""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

LATEST_MTIME = 8**11 - 1
"""Seconds since 1970 (the year 2242): a plain header holds no later modification time, so that it is cut to this."""


class EntryKind(Enum):
    """The kind of a project's entry. The values are part of the digest."""

    FILE = "file"
    LINK = "link"
    FOLDER = "folder"


class ArchiveEntry(NamedTuple):
    """One file, symbolic link or folder. A tuple: a project has thousands, and a dataclass takes twice as long."""

    path: str  # relative to the project, with `/`; bytes that are not UTF-8 are surrogate escapes
    kind: EntryKind
    size: int = 0  # bytes; of a file
    mtime: int = 0  # seconds since 1970
    executable: bool = False  # whether a file may be executed
    target: str = ""  # target of a link
    content: str = ""  # SHA-256 (hex) of a file that was read


def sort_by_path(entries: Iterable[ArchiveEntry]) -> list[ArchiveEntry]:
    """Return the entries sorted by the bytes of their paths."""
    ordered = list(entries)
    if all(entry.path.isascii() for entry in ordered):  # ASCII text sorts like its bytes, and compares faster
        return sorted(ordered, key=attrgetter("path"))
    return sorted(ordered, key=lambda entry: os.fsencode(entry.path))
