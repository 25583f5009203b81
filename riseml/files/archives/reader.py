"""Bytes to fields: a reader of tar that refuses what two readers of tar could understand differently.

It takes what plain archives consist of, as tarfile, GNU tar and bsdtar write them: files, folders, symbolic links, and
names that are too long for a header, in GNU's form (`L`, `K`) or as `path` and `linkpath` of a pax header. Everything
else is refused with one sentence: other types, other pax keys (sparse files, attributes, owners), fields with bytes
after their end, members after the end of the archive. It holds one header in memory, whatever size the header declares.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from typing import Protocol

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.files.archives.entries import LATEST_MTIME, ArchiveEntry, EntryKind
from riseml.files.archives.writer import BLOCK, END, LARGEST_OCTAL, LONG_NAME, LONG_TARGET, MAGIC, TYPES

LONGEST_PATH = 4096
"""Bytes of a path or of the target of a link."""

_LONGEST_PART = 255  # bytes of a file's name on Linux
_LONGEST_PAX = 2 * LONGEST_PATH + BLOCK  # bytes of a pax header
_PAX = b"x"
_EXTENSIONS = frozenset({_PAX, LONG_NAME, LONG_TARGET})
_PAX_KEYS = frozenset({b"path", b"linkpath", b"size", b"mtime", b"hdrcharset"})
_KINDS = {kind: entry for entry, kind in TYPES.items()}
_POSIX_MAGIC = b"ustar\x0000"
_HEADER = struct.Struct("100s8s16s12s12s8s1s100s8s64s16s155s12s")
_NUMBER = re.compile(rb" *([0-7]+)[ \0]+")
_IGNORED_NUMBER = re.compile(rb"\0{8}| *[0-7]+[ \0]+|\x80.{7}", re.DOTALL)
_SUSPECT = re.compile(rb"/[./]")
_SECONDS = re.compile(rb"(-?)(\d{1,18})(?:\.\d*)?")
_PIECE = 1 << 18  # bytes of one piece of a content
_HINT = "send an archive that riseml or plain `tar` has written"


@dataclass(frozen=True, slots=True)
class _Header:
    """The fields of one block. Owners, user names and modes other than the executable bit are not kept."""

    name: bytes
    kind: bytes
    size: int
    mtime: int
    executable: bool
    target: bytes
    is_posix: bool  # the format is that of POSIX, not of GNU


class _Extension:
    """The extended headers before an entry: they replace fields of its header."""

    def __init__(self) -> None:
        self.records: dict[bytes, bytes] = {}  # records of a pax header
        self.longs: dict[bytes, bytes] = {}  # GNU's long name and long target, by type

    def fields_of(self, header: _Header) -> tuple[bytes, bytes, int, int]:
        """Return name, target, size and modification time of the entry that follows."""
        if (self.records and not header.is_posix) or (self.longs and header.is_posix):
            raise _make_refusal("an extended header belongs to another format than its member")
        if LONG_TARGET in self.longs and header.kind != TYPES[EntryKind.LINK]:
            raise _make_refusal("a member that is not a link has the target of one")
        name = self.longs.get(LONG_NAME) or self.records.get(b"path") or header.name
        target = self.longs.get(LONG_TARGET) or self.records.get(b"linkpath") or header.target
        return name, target, self._find_size(header), self._find_mtime(header)

    def _find_size(self, header: _Header) -> int:
        """Return the size: a pax header has it only when it is too large for the plain one."""
        text = self.records.get(b"size")
        if text is None:
            return header.size
        if not re.fullmatch(rb"[1-9]\d{0,18}", text) or int(text) <= LARGEST_OCTAL or header.size != 0:
            raise _make_refusal("a pax header gives a member another size")
        return int(text)

    def _find_mtime(self, header: _Header) -> int:
        text = self.records.get(b"mtime")
        if text is None:
            return header.mtime
        match = _SECONDS.fullmatch(text)
        if match is None:
            raise _make_refusal("a pax header has a modification time that is not a number")
        return 0 if match[1] else min(int(match[2]), LATEST_MTIME)


class ArchiveFile(Protocol):
    """The methods that the reader calls on a file. It moves forwards only, as long as the caller does."""

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes; fewer at the end."""

    def seek(self, position: int, /) -> object:
        """Move to a position, counted from the beginning."""


def read_entries(file: ArchiveFile) -> Iterator[tuple[ArchiveEntry, int]]:
    """Yield each entry of an archive with the position of its content, which `read_content` reads.

    The file may be read and moved between two entries.

    Raises:
        UsageError: it is not a plain tar archive, or is cut off.
    """
    at = 0
    extension = _Extension()
    while True:
        file.seek(at)
        block = file.read(BLOCK)
        at += BLOCK
        if block == bytes(BLOCK):
            if extension.records or extension.longs:
                raise _make_refusal("an extended header has no member")
            _check_end(file)
            return
        header = _parse_header(block)
        if header.kind in _EXTENSIONS:
            _read_extension(file, header, extension)
            at += _round_up(header.size)
            continue
        entry = _make_entry(header, extension)
        yield entry, at
        at += _round_up(entry.size)
        extension = _Extension()


def read_content(file: ArchiveFile, at: int, size: int) -> Iterator[bytes]:
    """Yield the content of a file in pieces.

    Raises:
        UsageError: the archive is cut off.
    """
    file.seek(at)
    while size > 0:
        piece = file.read(min(size, _PIECE))
        if not piece:
            raise _make_refusal("it is cut off")
        size -= len(piece)
        yield piece


def _make_refusal(why: str) -> UsageError:
    return UsageError(f"the project's archive is not a tar archive that riseml takes: {why}", _HINT)


def _round_up(size: int) -> int:
    return size + -size % BLOCK


def _check_end(file: ArchiveFile) -> None:
    """Check that only zeros follow the first block of zeros, at least one block of them."""
    length = BLOCK
    while piece := file.read(_PIECE):
        length += len(piece)
        if piece.count(0) != len(piece):
            raise _make_refusal("it has bytes after its end")
    if length < len(END) or length % BLOCK:
        raise _make_refusal("it is cut off")


def _parse_header(block: bytes) -> _Header:
    if len(block) < BLOCK:
        raise _make_refusal("it is cut off")
    name, mode, ids, size, mtime, checksum, kind, target, magic, _, devices, prefix, padding = _HEADER.unpack(block)
    if _read_number(checksum) != _sum_block(block) - sum(checksum) + 8 * ord(" "):
        raise _make_refusal("a header has a wrong checksum")
    if magic not in (MAGIC, _POSIX_MAGIC):
        raise _make_refusal("a header is neither of POSIX nor of GNU")
    if kind not in _KINDS and kind not in _EXTENSIONS:
        name_text = os.fsdecode(name.rstrip(b"\0"))
        raise UsageError(f"{name_text!r} is neither a file, a folder nor a link", "name it in .risemlignore")
    if padding.strip(b"\0") or (magic == MAGIC and prefix.strip(b"\0")):
        raise _make_refusal("a header has fields of another format")
    for number in (ids[:8], ids[8:], devices[:8], devices[8:]):
        if not _IGNORED_NUMBER.fullmatch(number):
            raise _make_refusal("a header has a field that is not a number")
    start = _read_text(prefix)
    return _Header(
        name=start + b"/" + _read_text(name) if start else _read_text(name),
        kind=kind,
        size=_read_number(size),
        mtime=min(_read_number(mtime), LATEST_MTIME),
        executable=bool(_read_number(mode) & 0o100),
        target=_read_text(target),
        is_posix=magic == _POSIX_MAGIC,
    )


def _sum_block(block: bytes) -> int:
    return sum(block.translate(None, b"\0"))  # most of a header is zeros, and adding them up takes the most time


def _read_number(field: bytes) -> int:
    """Return the number in octal digits, or in the base 256 of GNU."""
    match = _NUMBER.fullmatch(field)
    if match is not None:
        return int(match[1], 8)
    if len(field) == 12 and field[:4] == b"\x80\0\0\0":
        return int.from_bytes(field[4:], "big")
    raise _make_refusal("a header has a field that is not a number")


def _read_text(field: bytes) -> bytes:
    text, _, padding = field.partition(b"\0")
    if padding.strip(b"\0"):
        raise _make_refusal("a header has a text field with bytes after its end")
    return text


def _read_extension(file: ArchiveFile, header: _Header, extension: _Extension) -> None:
    """Read a pax header or a long name into `extension`."""
    is_pax = header.kind == _PAX
    if header.size > (_LONGEST_PAX if is_pax else LONGEST_PATH + 2) or extension.records:
        raise _make_refusal("an extended header is too long, or there are two")
    data = file.read(header.size)
    if len(data) < header.size:
        raise _make_refusal("it is cut off")
    if is_pax:
        if extension.longs or not header.is_posix:
            raise _make_refusal("it mixes extended headers of POSIX and GNU")
        extension.records = _parse_records(data)
        return
    text = data.removesuffix(b"\0")
    if header.is_posix or header.kind in extension.longs or not text or b"\0" in text or text == data:
        raise _make_refusal("a long name is malformed")
    extension.longs[header.kind] = text


def _parse_records(data: bytes) -> dict[bytes, bytes]:
    """Return the records of a pax header: `<length> <key>=<value>\\n`, where the length counts itself."""
    records: dict[bytes, bytes] = {}
    while data:
        digits = data[: data.find(b" ")]
        length = int(digits) if re.fullmatch(rb"[1-9]\d{0,5}", digits) else 0
        key, equals, value = data[len(digits) + 1 : max(length - 1, 0)].partition(b"=")
        if not equals or data[length - 1 : length] != b"\n" or key in records:
            raise _make_refusal("a pax header is malformed")
        if key not in _PAX_KEYS or (key == b"hdrcharset" and value != b"BINARY"):
            key_text = key[:60].decode("ascii", "backslashreplace")
            raise _make_refusal(f"it has the pax key {key_text!r}, and only path, linkpath, size and mtime are plain")
        if not value or b"\0" in value:
            raise _make_refusal("a pax header has a value that is empty or contains a NUL byte")
        records[key] = value
        data = data[length:]
    if not records:
        raise _make_refusal("a pax header is empty")
    return records


def _make_entry(header: _Header, extension: _Extension) -> ArchiveEntry:
    kind = _KINDS[header.kind]
    name, target, size, mtime = extension.fields_of(header)
    if kind is EntryKind.FOLDER:
        name = name.removesuffix(b"/")
    if (size and kind is not EntryKind.FILE) or (target and kind is not EntryKind.LINK):
        raise _make_refusal("a member has a content or a target that its type does not have")
    path = os.fsdecode(check_path(name))
    if kind is EntryKind.LINK:
        return ArchiveEntry(path, kind, mtime=mtime, target=os.fsdecode(check_target(target, path)))
    return ArchiveEntry(path, kind, size, mtime, executable=kind is EntryKind.FILE and header.executable)


def check_path(name: bytes) -> bytes:
    """Return the path of an entry: below the project, and in its shortest form.

    Raises:
        UsageError: it is another path.
    """
    if len(name) <= _LONGEST_PART and name[:1].isalnum() and name[-1:] != b"/" and not _SUSPECT.search(name):
        return name  # nearly all paths: no part begins with a dot, and none is empty
    parts = name.split(b"/")
    if not parts[0] or b".." in parts:
        raise UsageError(f"{os.fsdecode(name)!r} leads out of the project", "name it in .risemlignore")
    if b"" in parts or b"." in parts:
        raise UsageError(f"{os.fsdecode(name)!r} is not the shortest form of a path", "write `a/b`, not `./a//b`")
    if len(name) > LONGEST_PATH or max(map(len, parts)) > _LONGEST_PART:
        raise UsageError(f"the path {os.fsdecode(name)[:80]!r}... is too long", "name it in .risemlignore")
    return name


def check_target(target: bytes, path: str) -> bytes:
    """Return the target of a link: relative, and not too long.

    Raises:
        UsageError: it is another target.
    """
    if target.startswith(b"/"):
        raise UsageError(f"{path!r} leads out of the project", "name it in .risemlignore")
    if not target or len(target) > LONGEST_PATH:
        raise UsageError(f"the link {path!r} has no target, or a too long one", "name it in .risemlignore")
    return target
