"""A set of the cache as tar archives for a host, and the comparison of what a host has with the set.

Each file is hashed while it is packed, and again while it is compared, so that neither a damaged disk of the server nor
one of the host goes unnoticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from riseml.base.errors import EngineError, UsageError
from riseml.base.records import dataclass
from riseml.data_stores.data_cache import FileRow
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.reader import read_content, read_entries
from riseml.files.archives.writer import END, pad_content, write_header

_PIECE = 1 << 20  # bytes
_BATCH = 64 << 20  # bytes of one archive; a larger file has an archive of its own
_MOST_FILES = 2_000  # files of one archive
_NANOSECONDS = 10**9

Note = Callable[[int], None]
"""Receives the number of bytes that were just processed; it may raise an error to end the work."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some files of a set, which go to a host as one archive."""

    rows: Sequence[FileRow]
    end: int  # how many files of the set have arrived with it


def split_set(rows: Sequence[FileRow], begin: int) -> Iterator[Batch]:
    """Yield the files of a set in batches of moderate size: an interrupted copy continues with the next batch.

    Args:
        rows: all files of the set.
        begin: how many have arrived.
    """
    batch: list[FileRow] = []
    size = 0
    for place, row in enumerate(rows[begin:], begin):
        if batch and (size + row.size > _BATCH or len(batch) == _MOST_FILES):
            yield Batch(batch, place)
            batch = []
            size = 0
        batch.append(row)
        size += row.size
    if batch:
        yield Batch(batch, len(rows))


def pack_batch(folder: Path, batch: Batch, note: Note) -> Iterator[bytes]:
    """Yield a tar of some files, each with the folders above it.

    Args:
        folder: the files of the set in the cache.
        batch: which of them.
        note: takes the bytes of files that were packed.

    Raises:
        EngineError: a file is not what was fetched (permanent).
    """
    folders: set[PurePosixPath] = set()
    buffer = bytearray()
    for piece in _write_members(folder, batch, note, folders):
        buffer += piece
        if len(buffer) >= _PIECE:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer) + END


def check_copy(tar: Iterator[bytes], rows: Sequence[FileRow], note: Note) -> None:
    """Compare a host's copy of a set with the set. Whatever the host sends, this takes little memory.

    Args:
        tar: what the host has, below one folder.
        rows: all files of the set.
        note: takes the bytes of files that were compared.

    Raises:
        EngineError: a file is missing or different.
    """
    missing = {row.path: row for row in rows}
    file = _Pieces(tar)
    try:
        for entry, at in read_entries(file):
            if entry.kind is EntryKind.FOLDER:
                continue
            _, _, path = entry.path.partition("/")
            row = missing.pop(path, None)
            is_same = row is not None and (entry.kind, entry.size) == (EntryKind.FILE, row.size)
            if row is None or not is_same or _hash(read_content(file, at, entry.size), note) != row.sha256:
                raise EngineError(f"what the host has of {path!a} is not what was sent to it")
    except UsageError as error:
        raise EngineError("the host does not show what it has in a plain archive") from error
    if missing:
        raise EngineError(f"the host lacks {len(missing):,} files of what was sent to it")


def _write_members(folder: Path, batch: Batch, note: Note, folders: set[PurePosixPath]) -> Iterator[bytes]:
    for row in batch.rows:
        above = [
            parent for parent in reversed(PurePosixPath(row.path).parents) if parent.name and parent not in folders
        ]
        for parent in above:
            yield write_header(ArchiveEntry(str(parent), EntryKind.FOLDER))
        folders.update(above)
        entry = ArchiveEntry(row.path, EntryKind.FILE, row.size, row.changed // _NANOSECONDS)
        yield write_header(entry)
        yield from _read_file(folder / row.path, row, note)
        yield pad_content(row.size)


def _read_file(path: Path, row: FileRow, note: Note) -> Iterator[bytes]:
    digest = hashlib.sha256()
    left = row.size
    try:
        with open(path, "rb") as file:
            while piece := file.read(min(_PIECE, left)):
                digest.update(piece)
                left -= len(piece)
                note(len(piece))
                yield piece
    except OSError as error:
        text = f"{path} cannot be read: {error.strerror or error}"
        raise EngineError(text, "run `riseml train` again: it fetches the data again", permanent=True) from None
    if left or digest.hexdigest() != row.sha256:
        text = f"{path} is not what was fetched: it was changed, or its disk is damaged"
        raise EngineError(text, "`riseml system clean` removes sets of data", permanent=True)


def _hash(pieces: Iterator[bytes], note: Note) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        note(len(piece))
    return digest.hexdigest()


class _Pieces:
    """Pieces of bytes as a file that can only be read forwards."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._buffer = bytearray()
        self._at = 0

    def seek(self, position: int) -> None:
        """Skip bytes up to a position, which is never before the current one."""
        while self._at < position and self.read(min(position - self._at, _PIECE)):
            pass

    def read(self, size: int) -> bytes:
        """Return `size` bytes; fewer at the end."""
        while len(self._buffer) < size and (piece := next(self._pieces, b"")):
            self._buffer += piece
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._at += len(data)
        return data
