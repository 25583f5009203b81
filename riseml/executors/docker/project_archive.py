"""The project as one archive for a container's root.

The engine starts a process for each archive, which takes longer than it unpacks a usual project; so there is only one.
It starts with the working directory, which the engine created for root, and names its owner. The headers are changed
by hand, because tarfile would read and write every member of a project of 20,000 files again.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from riseml.model import Owner

_FOLDER = b"code"
_PIECE = 1 << 18  # bytes of one piece
_SIZE, _SUM, _KIND, _PREFIX = slice(124, 136), slice(148, 156), slice(156, 157), slice(345, 500)  # of a ustar header


def repack_project(snapshot: Path, owner: Owner) -> Iterator[bytes]:
    """Yield the tar of a snapshot below `code/`, in pieces.

    Args:
        snapshot: a tar as the store writes it: ustar headers, and pax `x` headers for what does not fit into them.
        owner: of the working directory; the files' owners are in the snapshot.

    Raises:
        OSError: the snapshot cannot be read, or is cut off.
    """
    entry = tarfile.TarInfo(_FOLDER.decode())
    entry.type, entry.mode, entry.uid, entry.gid = tarfile.DIRTYPE, 0o755, owner.uid, owner.gid
    held = bytearray(entry.tobuf())
    with snapshot.open("rb") as tar:
        for piece in _move_members(tar):
            held += piece
            if len(held) >= _PIECE:
                yield bytes(held)
                held.clear()
    yield bytes(held)


def _move_members(tar: BinaryIO) -> Iterator[bytes]:
    """Yield every member with its name below the folder; the bytes of its content stay as they are."""
    larger: int | None = None  # bytes of the next member, when its pax header has the size
    while any(header := tar.read(tarfile.BLOCKSIZE)):
        size = int(header[_SIZE].rstrip(b"\0 ") or b"0", 8) if larger is None else larger
        larger = None
        if header[_KIND] == tarfile.XHDTYPE:
            records = dict(_read_records(_read_blocks(tar, size)[:size]))
            larger = int(records[b"size"]) if b"size" in records else None
            if b"path" in records:
                records[b"path"] = _FOLDER + b"/" + records[b"path"]
            content = b"".join(_write_record(name, value) for name, value in records.items())
            yield _replace_field(header, _SIZE, b"%011o\0" % len(content))
            yield content + bytes(-len(content) % tarfile.BLOCKSIZE)
            continue
        above = header[_PREFIX].rstrip(b"\0")
        yield _replace_field(header, _PREFIX, (_FOLDER + b"/" + above if above else _FOLDER).ljust(155, b"\0"))
        left = size + -size % tarfile.BLOCKSIZE
        while left > 0:
            piece = _read_blocks(tar, min(left, _PIECE))
            left -= len(piece)
            yield piece
    yield bytes(2 * tarfile.BLOCKSIZE)


def _read_blocks(tar: BinaryIO, size: int) -> bytes:
    """Return `size` bytes and the padding of their last block.

    Raises:
        OSError: the file ends before that.
    """
    wanted = size + -size % tarfile.BLOCKSIZE
    data = tar.read(wanted)
    if len(data) < wanted:
        raise OSError(f"the snapshot {tar.name} is cut off")
    return data


def _replace_field(header: bytes, place: slice, value: bytes) -> bytes:
    """Return a header with another value in one field, and the checksum of the result."""
    fresh = header[: place.start] + value + header[place.stop :]
    total = sum(fresh) - sum(fresh[_SUM]) + 8 * ord(" ")
    return fresh[: _SUM.start] + b"%06o\0 " % total + fresh[_SUM.stop :]


def _read_records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of a pax header: `<length> <name>=<value>\\n`, where the length counts itself."""
    while data:
        length = int(data[: data.index(b" ")])
        name, _, value = data[data.index(b" ") + 1 : length - 1].partition(b"=")
        yield name, value
        data = data[length:]


def _write_record(name: bytes, value: bytes) -> bytes:
    """Return one record of a pax header."""
    rest = b" " + name + b"=" + value + b"\n"
    length = len(rest)
    while len(str(length)) + len(rest) != length:
        length = len(str(length)) + len(rest)
    return str(length).encode() + rest
