"""Packs: files with many contents one after the other, each after its length. A pack is written once."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from riseml.base.records import dataclass
from riseml.files.archives.pieces import RECORD

PART = ".part"
PACK = ".pack"
"""Suffixes of a pack that is being written, and of one that is complete."""

_BUFFER = 1 << 20  # bytes
_MOST_OPEN = 32  # packs


@dataclass(frozen=True, slots=True)
class PackedContent:
    """A content of a pack."""

    content: bytes  # SHA-256
    at: int  # position of the content itself
    size: int  # bytes


@dataclass(frozen=True, slots=True)
class NewPack:
    """A complete pack under its temporary name, which is not in the table yet."""

    path: Path
    size: int  # bytes of the file
    contents: tuple[PackedContent, ...]

    def flush(self) -> None:
        """Wait until the disk has the file: after a power cut an acknowledged content must not be empty."""
        handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class PackFile:
    """A pack that is being written. It is removed at the end of the block unless it was renamed.

    Args:
        folder: in which it is.
    """

    def __init__(self, folder: Path) -> None:
        handle, name = tempfile.mkstemp(dir=folder, suffix=PART)
        self.path = Path(name)
        self.size = 0  # bytes of the kept contents
        self._file = open(handle, "wb", buffering=_BUFFER)  # noqa: SIM115  # until the end of the block
        self._contents: list[PackedContent] = []
        self._length = 0  # SHA-256 of the content that is being written
        self._hash = hashlib.sha256()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()  # on a full disk it fails again
        finally:
            self.path.unlink(missing_ok=True)

    def begin_content(self, size: int) -> None:
        """Begin a content of `size` bytes."""
        self._length = size
        self._hash = hashlib.sha256()
        self._file.write(RECORD.pack(size))

    def add_bytes(self, data: bytes | memoryview) -> None:
        """Write the next bytes of the content."""
        self._hash.update(data)
        self._file.write(data)

    def hash_content(self) -> bytes:
        """Return the SHA-256 of what was written of the content."""
        return self._hash.digest()

    def keep_content(self) -> None:
        """Keep the content, of which all bytes were written."""
        self._contents.append(PackedContent(self._hash.digest(), self.size + RECORD.size, self._length))
        self.size += RECORD.size + self._length

    def drop_content(self) -> None:
        """Drop what was written since `begin_content`."""
        self._file.seek(self.size)
        self._file.truncate()

    def finish(self) -> NewPack | None:
        """Close the file, and return the pack; None: nothing is in it."""
        self._file.close()
        return NewPack(self.path, self.size, tuple(self._contents)) if self._contents else None


class OpenPacks:
    """Reads packs below a folder; each is opened once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def read(self, pack: str, at: int, size: int) -> bytes:
        """Return up to `size` bytes of a pack; none after its end.

        Raises:
            OSError: the pack cannot be read, or is not there.
        """
        handle = self._open.get(pack)
        if handle is None:
            if len(self._open) >= _MOST_OPEN:
                os.close(self._open.pop(next(iter(self._open))))
            handle = self._open[pack] = os.open(self._folder / pack, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(handle, size, at)


def scan_pack(path: Path) -> Iterator[PackedContent]:
    """Yield the contents of a pack, by reading all of it; a record that is cut off is left out."""
    with path.open("rb", buffering=_BUFFER) as file:
        at = 0
        while len(head := file.read(RECORD.size)) == RECORD.size:
            (size,) = RECORD.unpack(head)
            digest = hashlib.sha256()
            left = size
            while left and (piece := file.read(min(left, _BUFFER))):
                digest.update(piece)
                left -= len(piece)
            if left:
                return
            yield PackedContent(digest.digest(), at + RECORD.size, size)
            at += RECORD.size + size


def flush_folder(folder: Path) -> None:
    """Wait until the disk has the names in a folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
