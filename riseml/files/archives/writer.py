"""Fields to bytes: the members of a tar archive as every reader of tar understands them.

The format is GNU's, because names keep their bytes there: a plain header for each entry, and before it a long name or
a long target where one is needed. Nothing else is ever written: no extended headers, no user names, no devices.

An archive is written for every job that starts, and tarfile needs several times as long for the same bytes (see
docs/decisions).
"""

from __future__ import annotations

import os

from riseml.base.records import dataclass
from riseml.files.archives.entries import LATEST_MTIME, ArchiveEntry, EntryKind

BLOCK = 512
"""Bytes; every header is one block, and every content is padded to whole blocks."""

END = bytes(2 * BLOCK)
"""The end of an archive."""

LONG_NAME = b"L"
LONG_TARGET = b"K"
"""Types of the members that hold the name or the target of the next one."""

TYPES = {EntryKind.FILE: b"0", EntryKind.LINK: b"2", EntryKind.FOLDER: b"5"}

MAGIC = b"ustar  \0"

LARGEST_OCTAL = 8**11 - 1
"""The largest number that fits into a field of 12 bytes as octal digits."""

_LONG_LINK = b"././@LongLink"
_SHORT = 100  # bytes of a name or target that fit into a header
_REST = bytes(247)  # rest of a header, after the magic
_FIXED_SUM = sum(MAGIC) + 8 * ord(" ")  # the checksum counts itself as blanks


@dataclass(frozen=True, slots=True)
class FileOwner:
    """The owner of an archive's files, as numbers."""

    uid: int = 0
    gid: int = 0


ROOT = FileOwner()


def write_header(entry: ArchiveEntry, owner: FileOwner = ROOT, below: str = "") -> bytes:
    """Return all blocks before the content of an entry.

    Args:
        entry: its mode becomes 0755 when it is executable or a folder, and 0644 otherwise.
        owner: of the entry.
        below: a folder that the path is put into.

    Example:
        write_header(ArchiveEntry("train.py", EntryKind.FILE, size=5)) + b"pass\\n" + bytes(507)
    """
    path = f"{below}/{entry.path}" if below else entry.path
    name = os.fsencode(f"{path}/" if entry.kind is EntryKind.FOLDER else path)
    target = os.fsencode(entry.target) if entry.kind is EntryKind.LINK else b""
    opens = entry.kind is EntryKind.FOLDER or (entry.kind is EntryKind.FILE and entry.executable)
    numbers = b"%07o\0%s%s%s%011o\0" % (
        0o755 if opens else 0o644,
        _write_id(owner.uid),
        _write_id(owner.gid),
        _write_size(entry.size if entry.kind is EntryKind.FILE else 0),
        min(max(entry.mtime, 0), LATEST_MTIME),
    )
    header = _join_header(name, numbers, TYPES[entry.kind], target)
    if len(name) > _SHORT:
        header = _write_long(LONG_NAME, name) + header
    if len(target) > _SHORT:
        header = _write_long(LONG_TARGET, target) + header
    return header


def pad_content(size: int) -> bytes:
    """Return the zeros after a content of `size` bytes."""
    return bytes(-size % BLOCK)


def _write_long(kind: bytes, text: bytes) -> bytes:
    size = len(text) + 1
    numbers = b"%07o\0%s%s%s%011o\0" % (0, _write_id(0), _write_id(0), _write_size(size), 0)
    return _join_header(_LONG_LINK, numbers, kind, b"") + text + bytes(1 + -size % BLOCK)


def _join_header(name: bytes, numbers: bytes, kind: bytes, target: bytes) -> bytes:
    name = name[:_SHORT]
    target = target[:_SHORT]
    return b"%s%s%s%06o\0 %s%s%s%s%s" % (
        name,
        bytes(_SHORT - len(name)),
        numbers,
        sum(name) + sum(numbers) + sum(kind) + sum(target) + _FIXED_SUM,
        kind,
        target,
        bytes(_SHORT - len(target)),
        MAGIC,
        _REST,
    )


def _write_size(size: int) -> bytes:
    """Return a size as octal digits, or above 8 GiB in base 256."""
    return b"%011o\0" % size if size <= LARGEST_OCTAL else b"\x80" + size.to_bytes(11, "big")


def _write_id(number: int) -> bytes:
    return b"%07o\0" % number if number < 8**7 else b"\x80" + number.to_bytes(7, "big")
