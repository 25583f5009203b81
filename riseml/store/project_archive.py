"""The copy of an uploaded project archive: the server reads plain fields, checks them, and writes all of it anew.

The copy holds files, links and empty folders, which is what the digest of a project names. Owners are not in it: they
are applied where a job starts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

from riseml.archives.digest import digest_entries
from riseml.archives.entries import ArchiveEntry, EntryKind
from riseml.archives.reader import read_content, read_entries
from riseml.archives.tree import ProjectTree
from riseml.archives.writer import END, pad_content, write_header
from riseml.errors import NotFound

LONGEST_TEXT = 64 * 1024
"""Bytes of a text file that planning reads."""


@dataclass(slots=True)
class ArchiveContents:
    """What a copied archive holds; filled while it is copied."""

    files: dict[str, str] = field(default_factory=dict)  # path -> what makes two files differ, for the manifest
    texts: dict[str, tuple[int, int]] = field(default_factory=dict)  # path -> place of a small text file in the copy
    digest: str = ""  # of the project, computed from what was copied


class ArchivedTexts(Mapping[str, str]):
    """The small text files of a stored archive. Each is read when it is asked for, and not kept.

    Args:
        archive: the tar; it may be removed later.
        places: position and bytes of each content, by path.
    """

    def __init__(self, archive: Path, places: Mapping[str, tuple[int, int]]) -> None:
        self._archive = archive
        self._places = places

    def __getitem__(self, path: str) -> str:
        """Return a content.

        Raises:
            KeyError: there is no such text.
            NotFound: the archive was removed.
        """
        at, size = self._places[path]
        try:
            with self._archive.open("rb") as file:
                return b"".join(read_content(file, at, size)).decode("utf-8", "replace")
        except FileNotFoundError as error:
            raise NotFound("the project's files are not on the server any more", "run `riseml train` again") from error

    def __iter__(self) -> Iterator[str]:
        """Yield the paths."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._places)


def copy_archive(upload: Path, target: Path) -> ArchiveContents:
    """Write a new archive with the checked fields of another one, and return what it holds.

    Raises:
        UsageError: it is no plain tar, or holds something else than files, folders and links inside the project.
        TooLarge: it has too many entries.
    """
    with target.open("wb") as file, upload.open("rb") as source:
        contents = _Copier(source, file).copy_all()
        flush_to_disk(file)
    return contents


def flush_to_disk(file: IO[Any]) -> None:
    """Wait until the disk has the file: after a power cut an acknowledged file must not be empty."""
    file.flush()
    os.fsync(file.fileno())


class _Copier:
    """Copies one archive."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source, self._target = source, target
        self._position = 0  # in the target
        self._tree = ProjectTree()
        self._found = ArchiveContents()
        self._named: list[tuple[ArchiveEntry, str]] = []  # what the digest names

    def copy_all(self) -> ArchiveContents:
        """Copy files and links as they come; then the folders that nothing came into."""
        folders: dict[str, ArchiveEntry] = {}
        for entry, at in read_entries(self._source):
            self._tree.add_entry(entry)
            match entry.kind:
                case EntryKind.FILE:
                    self._copy_file(entry, at)
                case EntryKind.LINK:
                    self._write(write_header(entry))
                    self._found.files[entry.path] = f"link:{entry.target}"
                    self._named.append((entry, ""))
                case EntryKind.FOLDER:
                    folders[entry.path] = entry
        for path, entry in folders.items():
            if self._tree.is_empty(path):
                self._write(write_header(entry))
                self._named.append((entry, ""))
        self._tree.check_links()
        self._write(END)
        self._found.digest = digest_entries(self._named)
        return self._found

    def _copy_file(self, entry: ArchiveEntry, at: int) -> None:
        self._write(write_header(entry))
        if entry.size <= LONGEST_TEXT and entry.path.endswith(".txt"):
            self._found.texts[entry.path] = (self._position, entry.size)
        content = hashlib.sha256()
        for piece in read_content(self._source, at, entry.size):
            content.update(piece)
            self._write(piece)
        self._write(pad_content(entry.size))
        self._found.files[entry.path] = f"{'x' if entry.executable else '-'}{content.hexdigest()}"
        self._named.append((entry, content.hexdigest()))

    def _write(self, data: bytes) -> None:
        self._target.write(data)
        self._position += len(data)
