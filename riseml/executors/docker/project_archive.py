"""The project as one archive for a container's root.

The engine starts a process for each archive, which takes longer than it unpacks a usual project; so there is only one.
It starts with the working directory, which the engine created for root, and names its owner. Every member is written
anew, with the owner of the job that starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from riseml.archives.entries import ArchiveEntry, EntryKind
from riseml.archives.reader import read_content, read_entries
from riseml.archives.writer import END, FileOwner, pad_content, write_header
from riseml.errors import EngineError, UsageError
from riseml.model import Owner

_FOLDER = "code"
_PIECE = 1 << 18  # bytes of one piece


def pack_working_directory(snapshot: Path, owner: Owner, folder: str = _FOLDER) -> Iterator[bytes]:
    """Yield a tar of a snapshot below a folder, in pieces.

    Args:
        snapshot: a tar as the store writes it.
        owner: of the working directory and of everything in it.
        folder: of the working directory, below the root.

    Raises:
        OSError: the snapshot cannot be read.
        EngineError: it is broken, or cut off.
    """
    held = bytearray()
    for piece in _write_members(snapshot, FileOwner(owner.uid, owner.gid), folder):
        held += piece
        if len(held) >= _PIECE:
            yield bytes(held)
            held.clear()
    yield bytes(held)


def _write_members(snapshot: Path, owner: FileOwner, folder: str) -> Iterator[bytes]:
    yield write_header(ArchiveEntry(folder, EntryKind.FOLDER), owner)
    try:
        with snapshot.open("rb") as file:
            for entry, at in read_entries(file):
                yield write_header(entry, owner, folder)
                yield from read_content(file, at, entry.size)
                yield pad_content(entry.size)
    except UsageError as error:
        raise EngineError(f"the snapshot {snapshot.name} cannot be read: {error.message}", permanent=True) from error
    yield END
