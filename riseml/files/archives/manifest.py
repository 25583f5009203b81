"""The manifest of a project's state: every entry with its size, its modification time and the SHA-256 of its content.

Client and server exchange it, and the server keeps it: the contents are stored elsewhere, each of them once. A field
ends with a NUL byte, which no field can hold. A manifest has one form for each state: the entries are sorted by the
bytes of their paths, and numbers have no leading zeros.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator

from riseml.base.errors import UsageError
from riseml.files.archives.digest import digest_entries
from riseml.files.archives.entries import LATEST_MTIME, ArchiveEntry, EntryKind, sort_by_path
from riseml.files.archives.reader import check_path, check_target
from riseml.files.archives.tree import LONGEST_NAMES, MOST_FILES, ProjectTree

LONGEST_MANIFEST = 2 * LONGEST_NAMES + 128 * MOST_FILES
"""Bytes of a manifest with the most files and the longest paths."""

_BEGIN = b"riseml manifest 1"
_FIELDS = 6  # fields of an entry: kind, path, x or -, size, modification time, content or target
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_CONTENT = re.compile(r"[0-9a-f]{64}")
_Fields = tuple[str, str, str, str, str, str]
_KINDS = {kind.value: kind for kind in EntryKind}


def write_manifest(entries: Iterable[ArchiveEntry]) -> bytes:
    """Return the manifest of a project's entries, of which each file has its `content`.

    Example:
        >>> len(write_manifest([ArchiveEntry("runs", EntryKind.FOLDER)]))
        37
    """
    kinds = {kind: kind.value for kind in EntryKind}  # `value` of an enum's member takes longer
    text = "".join(
        f"{kinds[entry.kind]}\0{entry.path}\0{'x' if entry.executable else '-'}\0{entry.size}\0"
        f"{min(entry.mtime, LATEST_MTIME)}\0{entry.target or entry.content}\0"
        for entry in sort_by_path(entries)
    )
    return _BEGIN + b"\0" + os.fsencode(text)


def read_manifest(data: bytes) -> tuple[ArchiveEntry, ...]:
    """Return the entries of a manifest from a client, once every field and all of them together are checked.

    Raises:
        UsageError: it is malformed, or holds anything but files, empty folders and links inside the project.
        TooLarge: it has too many entries.
    """
    entries = tuple(_read_entries(data))
    tree = ProjectTree()
    for entry in entries:
        tree.add_entry(entry)
    if not all(tree.is_empty(entry.path) for entry in entries if entry.kind is EntryKind.FOLDER):
        raise _make_refusal("it names a folder that is not empty")
    tree.check_links()
    return entries


def load_manifest(data: bytes) -> tuple[ArchiveEntry, ...]:
    """Return the entries of a manifest that was checked before."""
    return tuple(map(_make_entry, _split_entries(data)))


def digest_manifest(entries: Collection[ArchiveEntry]) -> str:
    """Return the digest of the project's state (hex)."""
    return digest_entries((entry, entry.content) for entry in entries)


def measure_manifest(data: bytes) -> tuple[int, int]:
    """Return how many entries a checked manifest has, and how many bytes their contents have together."""
    sizes = data.split(b"\0")[4::_FIELDS]
    return len(sizes), sum(map(int, sizes))


def list_contents(data: bytes) -> set[bytes]:
    """Return the SHA-256 (32 bytes) of every content that a checked manifest names."""
    fields = data.split(b"\0")[1:-1]
    pairs = zip(fields[0::_FIELDS], fields[5::_FIELDS], strict=True)
    return {bytes.fromhex(content.decode()) for kind, content in pairs if kind == b"file"}


def _read_entries(data: bytes) -> Iterator[ArchiveEntry]:
    last = b""
    names = data.split(b"\0")[2::_FIELDS]  # sorted as bytes, which is not always the order of text
    is_number = _NUMBER.fullmatch
    for fields, name in zip(_split_entries(data), names, strict=False):
        kind, _, flag, size, mtime, tail = fields
        if name <= last:
            raise _make_refusal("its paths are not in order")
        last = name
        if kind not in _KINDS or flag not in ("-", "x") or not is_number(size) or not is_number(mtime):
            raise _make_refusal("an entry has an invalid field")
        check_path(name)
        entry = _make_entry(fields)
        if entry.mtime > LATEST_MTIME:
            raise _make_refusal("a modification time is too late")
        if entry.kind is EntryKind.FILE:
            if not _CONTENT.fullmatch(tail):
                raise _make_refusal("a file has no SHA-256")
        elif entry.size or entry.executable or (tail and entry.kind is EntryKind.FOLDER):
            raise _make_refusal("an entry has a field that its kind does not have")
        elif entry.kind is EntryKind.LINK:
            check_target(os.fsencode(tail), entry.path)
        yield entry


def _split_entries(data: bytes) -> Iterator[_Fields]:
    begin, *fields = os.fsdecode(data).split("\0")  # decode all fields at once: no UTF-8 character contains a NUL byte
    if begin != _BEGIN.decode() or fields[-1:] != [""] or (len(fields) - 1) % _FIELDS:
        raise _make_refusal("it is cut off, or of another version")
    if len(fields) > MOST_FILES * _FIELDS + 1:
        # one more than allowed, so that the tree refuses the manifest
        fields = fields[: (MOST_FILES + 1) * _FIELDS + 1]
    each = iter(fields[:-1])
    return zip(each, each, each, each, each, each, strict=True)


def _make_entry(fields: _Fields) -> ArchiveEntry:
    kind, path, flag, size, mtime, tail = fields
    entry_kind = _KINDS[kind]
    if entry_kind is EntryKind.FILE:
        return ArchiveEntry(path, entry_kind, int(size), int(mtime), flag == "x", "", tail)
    return ArchiveEntry(path, entry_kind, 0 if size == "0" else int(size), int(mtime), flag == "x", tail)


def _make_refusal(why: str) -> UsageError:
    return UsageError(f"the project's list of files is not one that riseml takes: {why}", "run the command again")
