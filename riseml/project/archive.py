"""The content of a project at one moment: its digest, and the tar that the client sends. Nothing is written to disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from riseml.archives.digest import digest_entries
from riseml.archives.entries import EntryKind
from riseml.archives.writer import END, pad_content, write_header
from riseml.errors import UsageError
from riseml.project.listing import Listing, ProjectEntry
from riseml.project.messages import format_path

_CHUNK = 2**18  # bytes read or sent at once
_CHANGED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EISDIR})
"""Errors of opening a file that was removed or replaced by something else after it was listed."""


@dataclass(frozen=True, slots=True)
class Snapshot(Listing):
    """The entries of a project at one moment, with the digest of their content."""

    digest: str  # SHA-256, hex


def take_snapshot(listing: Listing) -> Snapshot:
    """Read every file once and return the entries with the digest of the content.

    `riseml.archives.digest` says what the digest names; the server computes it too, from the archive that it gets.

    Raises:
        UsageError: a file cannot be read, or changed after it was listed.

    Example:
        take_snapshot(list_project_files(Path("examples/ai-toaster"))).digest
    """
    folder = listing.folder
    entries = tuple(
        replace(entry, content=_hash_content(folder, entry)) if entry.kind is EntryKind.FILE else entry
        for entry in listing.entries
    )
    return Snapshot(folder, entries, digest_entries((entry, entry.content) for entry in entries))


def pack_snapshot(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield an uncompressed tar of the snapshot in pieces; one snapshot always gives the same bytes.

    Raises:
        UsageError: a file changed after the snapshot was taken.

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
        for piece in _read_content(snapshot.folder, entry):
            content.update(piece)
            yield piece
        if content.hexdigest() != entry.content:
            raise _make_changed_error(entry)
        yield pad_content(entry.size)
    yield END


def _hash_content(folder: Path, entry: ProjectEntry) -> str:
    from hashlib import sha256

    content = sha256()
    for piece in _read_content(folder, entry):
        content.update(piece)
    return content.hexdigest()


def _read_content(folder: Path, entry: ProjectEntry) -> Iterator[bytes]:
    """Yield the content of a file, exactly `entry.size` bytes."""
    try:
        # A file that became a link after it was listed must not be followed; one that became a pipe must not block.
        handle = os.open(folder / entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(handle, "rb", buffering=0) as file:
            left = entry.size
            while left and (piece := file.read(min(left, _CHUNK))):
                left -= len(piece)
                yield piece
            if left or file.read(1):
                raise _make_changed_error(entry)
    except OSError as error:
        if error.errno in _CHANGED:
            raise _make_changed_error(entry) from None
        raise UsageError(
            f"cannot read {format_path(entry.path)}: {error.strerror}",
            "make it readable, or add it to .risemlignore if the jobs do not need it",
        ) from None


def _make_changed_error(entry: ProjectEntry) -> UsageError:
    return UsageError(f"{format_path(entry.path)} changed while the project was being synced", "run the command again")
