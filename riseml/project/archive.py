"""The content of a project at one moment: its digest, and the tar that the client sends. Nothing is written to disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

from riseml.archives.digest import digest_entries
from riseml.archives.entries import ArchiveEntry, EntryKind
from riseml.archives.writer import END, pad_content, write_header
from riseml.errors import UsageError
from riseml.project.listing import Listing
from riseml.project.messages import format_path

_CHUNK = 2**18  # bytes read or sent at once
_MOST_READS = 4  # of a file that something writes to while it is read
_CHANGED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EISDIR})
"""Errors of opening a file that was removed or replaced by something else after it was listed."""


class ProjectChanged(UsageError):
    """A file changed while the project was read, so that what was read is the state of no moment."""


@dataclass(frozen=True, slots=True)
class Snapshot(Listing):
    """The entries of a project at one moment, with the digest of their content."""

    digest: str = ""  # SHA-256, hex


def take_snapshot(listing: Listing) -> Snapshot:
    """Read every file and return the entries with the digest of the content.

    Of a file that grows, such as a log, the snapshot has the bytes that it had when it was listed. A file that is
    written to while it is read is read again until two readings agree.
    `riseml.archives.digest` says what the digest names; the server computes it too, from the archive that it gets.

    Raises:
        ProjectChanged: a file is another one than was listed, or changes too fast.
        UsageError: a file cannot be read.

    Example:
        take_snapshot(list_project_files(Path("examples/ai-toaster"))).digest
    """
    folder = listing.folder
    entries = tuple(
        replace(entry, content=_hash_content(folder, entry)) if entry.kind is EntryKind.FILE else entry
        for entry in listing.entries
    )
    digest = digest_entries((entry, entry.content) for entry in entries)
    return Snapshot(folder, entries, listing.left_out, digest)


def pack_snapshot(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield an uncompressed tar of the snapshot in pieces; one snapshot always gives the same bytes.

    Raises:
        ProjectChanged: a file changed after the snapshot was taken.
        UsageError: a file cannot be read any more.

    Example:
        client.put_snapshot(snapshot.digest, pack_snapshot(snapshot))
    """
    held = bytearray()
    for piece in _yield_records(snapshot):
        held += piece
        if len(held) >= _CHUNK:
            yield bytes(held)
            held.clear()
    yield bytes(held)


def _yield_records(snapshot: Snapshot) -> Iterator[bytes]:
    from hashlib import sha256

    for entry in snapshot.entries:
        yield write_header(entry)
        if entry.kind is not EntryKind.FILE:
            continue
        content = sha256()
        with _open_content(snapshot.folder, entry) as file:
            for piece in _read_content(file, entry):
                content.update(piece)
                yield piece
        if content.hexdigest() != entry.content:
            raise _make_changed_error(entry)
        yield pad_content(entry.size)
    yield END


def _hash_content(folder: Path, entry: ArchiveEntry) -> str:
    """Return the SHA-256 (hex) of one state of a file."""
    before = ""
    for _ in range(_MOST_READS):
        content, is_still = _hash_once(folder, entry)
        if is_still or content == before:
            return content
        before = content
    raise _make_changed_error(entry)


def _hash_once(folder: Path, entry: ArchiveEntry) -> tuple[str, bool]:
    """Return the SHA-256 (hex) of a file, and True when nothing wrote to the file meanwhile."""
    from hashlib import sha256

    content = sha256()
    with _open_content(folder, entry) as file:
        begun = os.fstat(file.fileno())
        for piece in _read_content(file, entry):
            content.update(piece)
        ended = os.fstat(file.fileno())
    return content.hexdigest(), (begun.st_mtime_ns, begun.st_size) == (ended.st_mtime_ns, ended.st_size)


@contextmanager
def _open_content(folder: Path, entry: ArchiveEntry) -> Iterator[FileIO]:
    """Open a file for reading; errors of opening and reading become those of the project."""
    try:
        # A file that became a link after it was listed must not be followed; one that became a pipe must not block.
        handle = os.open(folder / entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(handle, "rb", buffering=0) as file:
            yield file
    except OSError as error:
        if error.errno in _CHANGED:
            raise _make_changed_error(entry) from None
        raise UsageError(
            f"cannot read {format_path(entry.path)}: {error.strerror}",
            "make it readable, or add it to .risemlignore if the jobs do not need it",
        ) from None


def _read_content(file: FileIO, entry: ArchiveEntry) -> Iterator[bytes]:
    """Yield the first `entry.size` bytes of a file: all that it had when it was listed."""
    left = entry.size
    while left and (piece := file.read(min(left, _CHUNK))):
        left -= len(piece)
        yield piece
    if left:
        raise _make_changed_error(entry)


def _make_changed_error(entry: ArchiveEntry) -> ProjectChanged:
    return ProjectChanged(
        f"{format_path(entry.path)} changed while the project was being synced",
        "run the command again, or add the file to .risemlignore if the jobs do not need it",
    )
