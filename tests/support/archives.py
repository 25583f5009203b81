"""Project archives that tests make and read."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping

from riseml.files.archives.digest import digest_entries
from riseml.files.archives.reader import read_content, read_entries

BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
FIELDS = {
    "name": (0, 100),
    "mode": (100, 108),
    "uid": (108, 116),
    "gid": (116, 124),
    "size": (124, 136),
    "mtime": (136, 148),
    "checksum": (148, 156),
    "kind": (156, 157),
    "target": (157, 257),
    "magic": (257, 265),
    "uname": (265, 297),
    "gname": (297, 329),
    "devmajor": (329, 337),
    "devminor": (337, 345),
    "prefix": (345, 500),
    "rest": (500, 512),
}
"""Where the fields of a header are."""


def pack(files: Mapping[str, str]) -> bytes:
    """Return a tar of these files, as tarfile writes it; a file that begins with `#!` is executable."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            entry.mode = 0o755 if text.startswith("#!") else 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def find_digest(archive: bytes) -> str:
    """Return the digest of the project in a plain archive without empty folders."""
    file = io.BytesIO(archive)
    return digest_entries(
        (entry, hashlib.sha256(b"".join(read_content(file, at, entry.size))).hexdigest())
        for entry, at in read_entries(file)
    )


def craft_member(name: bytes, content: bytes = b"", kind: bytes = b"0", **fields: bytes) -> bytes:
    """Return one member of a tar of POSIX with whatever is in its fields, and a checksum that is right.

    Args:
        name: the first field.
        content: is padded to whole blocks.
        kind: the type.
        fields: other fields by their name in `FIELDS`; a missing `size` is the size of the content.
    """
    header = bytearray(BLOCK)
    values = {
        "mode": b"0000644\0",
        "mtime": b"%011o\0" % 0,
        "size": b"%011o\0" % len(content),
        "magic": b"ustar\x0000",
        **fields,
    }
    for field, value in {"name": name, "kind": kind, **values}.items():
        start, end = FIELDS[field]
        header[start:end] = value.ljust(end - start, b"\0")
    return seal_header(bytes(header)) + content + bytes(-len(content) % BLOCK)


def craft_pax(**records: bytes) -> bytes:
    """Return a pax header; a dot in a key is written as two underscores."""
    return craft_member(
        b"pax", b"".join(pax_record(key.replace("__", "."), value) for key, value in records.items()), b"x"
    )


def pax_record(key: str, value: bytes) -> bytes:
    """Return one record of a pax header."""
    rest = b" " + key.encode() + b"=" + value + b"\n"
    length = len(rest)
    while len(str(length)) + len(rest) != length:
        length = len(str(length)) + len(rest)
    return str(length).encode() + rest


def seal_header(header: bytes) -> bytes:
    """Return a header with the checksum of its other fields."""
    blank = header[:148] + b" " * 8 + header[156:]
    return header[:148] + b"%06o\0 " % sum(blank) + header[156:]


class ContentCollector:
    """Collects contents by their SHA-256."""

    def __init__(self, found: dict[str, bytes]) -> None:
        self._found = found
        self._held = b""

    def begin_content(self, _: int) -> None:
        """Begin the next content."""
        self._held = b""

    def add_bytes(self, data: bytes | memoryview) -> None:
        """Take the next bytes of it."""
        self._held += data

    def end_content(self) -> None:
        """Keep it."""
        self._found[hashlib.sha256(self._held).hexdigest()] = self._held
