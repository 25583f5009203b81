"""The project as one archive for a container's root, so that the engine unpacks once: for each archive it starts a
process of its own, which takes longer than a usual project.

The working directory comes first. The engine makes it for root; the archive says whose it is.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from riseml.model import Owner

_FOLDER = b"code"
_PIECE = 1 << 18  # bytes that are sent at once
_SIZE, _SUM, _KIND, _PREFIX = slice(124, 136), slice(148, 156), slice(156, 157), slice(345, 500)  # of a ustar header


def code_archive(snapshot: Path, owner: Owner) -> Iterator[bytes]:
    """The tar of a snapshot below `code/`, in pieces.

    Args:
        snapshot: a tar as the store writes it: ustar headers, and `x` headers for what does not fit into them.
        owner: to whom the working directory belongs; the files' owners are in the snapshot.
    """
    entry = tarfile.TarInfo(_FOLDER.decode())
    entry.type, entry.mode, entry.uid, entry.gid = tarfile.DIRTYPE, 0o755, owner.uid, owner.gid
    held = bytearray(entry.tobuf())
    with snapshot.open("rb") as tar:
        for piece in _below(tar):
            held += piece
            if len(held) >= _PIECE:
                yield bytes(held)
                held.clear()
    yield bytes(held)


def _below(tar: BinaryIO) -> Iterator[bytes]:
    """Every member with its name below the folder; the bytes of its content as they are."""
    larger: int | None = None  # the size of the next member, when it does not fit into its header
    while any(header := tar.read(tarfile.BLOCKSIZE)):
        size = int(header[_SIZE].rstrip(b"\0 ") or b"0", 8) if larger is None else larger
        larger = None
        if header[_KIND] == tarfile.XHDTYPE:
            records = dict(_read_records(_read(tar, size)[:size]))
            larger = int(records[b"size"]) if b"size" in records else None
            if b"path" in records:
                records[b"path"] = _FOLDER + b"/" + records[b"path"]
            content = b"".join(_record(name, value) for name, value in records.items())
            yield _with(header, _SIZE, b"%011o\0" % len(content))
            yield content + bytes(-len(content) % tarfile.BLOCKSIZE)
            continue
        above = header[_PREFIX].rstrip(b"\0")
        yield _with(header, _PREFIX, (_FOLDER + b"/" + above if above else _FOLDER).ljust(155, b"\0"))
        left = size + -size % tarfile.BLOCKSIZE
        while left > 0:
            piece = _read(tar, min(left, _PIECE))
            left -= len(piece)
            yield piece
    yield bytes(2 * tarfile.BLOCKSIZE)


def _read(tar: BinaryIO, size: int) -> bytes:
    """So many bytes, and what fills up their last block.

    Raises:
        OSError: the file ends before.
    """
    wanted = size + -size % tarfile.BLOCKSIZE
    data = tar.read(wanted)
    if len(data) < wanted:
        raise OSError(f"the snapshot {tar.name} is cut off")
    return data


def _with(header: bytes, place: slice, value: bytes) -> bytes:
    """A header with another field and the sum that goes with it."""
    fresh = header[: place.start] + value + header[place.stop :]
    total = sum(fresh) - sum(fresh[_SUM]) + 8 * ord(" ")
    return fresh[: _SUM.start] + b"%06o\0 " % total + fresh[_SUM.stop :]


def _read_records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """`<length> <name>=<value>\\n`, the length counting itself."""
    while data:
        length = int(data[: data.index(b" ")])
        name, _, value = data[data.index(b" ") + 1 : length - 1].partition(b"=")
        yield name, value
        data = data[length:]


def _record(name: bytes, value: bytes) -> bytes:
    rest = b" " + name + b"=" + value + b"\n"
    length = len(rest)
    while len(str(length)) + len(rest) != length:
        length = len(str(length)) + len(rest)
    return str(length).encode() + rest
