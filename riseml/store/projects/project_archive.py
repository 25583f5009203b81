"""A project archive that a client sent whole, or an earlier version stored: the server reads plain fields and checks
them. Nothing else of its headers is kept. Owners are not kept: they are set where a job starts.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.pieces import Sink
from riseml.files.archives.project_files import TarFiles
from riseml.files.archives.tree import ProjectTree


def receive_tar(path: Path, sink: Sink) -> tuple[ArchiveEntry, ...]:
    """Pass the contents of an archive on, and return its files, links and empty folders.

    Raises:
        UsageError: it is not a plain tar, or holds something else than files, folders and links inside the project.
        TooLarge: it has too many entries.
        OSError: the disk is full.
    """
    tree = ProjectTree()
    folders: dict[str, ArchiveEntry] = {}
    entries: list[ArchiveEntry] = []
    for entry, pieces in TarFiles(path).read_files():
        tree.add_entry(entry)
        if entry.kind is EntryKind.FILE:
            content = hashlib.sha256()
            sink.begin_content(entry.size)
            for piece in pieces:
                content.update(piece)
                sink.add_bytes(piece)
            sink.end_content()
            entries.append(entry._replace(content=content.hexdigest()))
        elif entry.kind is EntryKind.LINK:
            entries.append(entry)
        else:
            folders[entry.path] = entry
    tree.check_links()
    entries += [entry for path, entry in folders.items() if tree.is_empty(path)]
    return tuple(entries)
