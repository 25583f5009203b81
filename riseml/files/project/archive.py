"""The content of a project at one moment: its digest, and what the client sends of it."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.files.archives.digest import digest_entries
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.pieces import RECORD
from riseml.files.archives.writer import END, pad_content, write_header
from riseml.files.project.file_index import FileIndex, FileState, read_state
from riseml.files.project.listing import Listing
from riseml.files.project.messages import format_path

_CHUNK = 2**18  # bytes read or sent at once
_PART = 64  # files that a thread reads before it asks for more
_SMALL = 2**23  # bytes that are read faster without threads
_MOST_THREADS = 8
_PROBES = 8  # files of the index that are read anyway
_LARGEST_PROBE = 2**18  # bytes of such a file
_MOST_READS = 4  # reads of a file that something writes to meanwhile
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""How files are opened: one that became a link after it was listed is not followed, one that became a pipe blocks
nothing."""

_CHANGED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EISDIR})
"""Errors of opening a file that was removed or replaced by something else after it was listed."""


class ProjectChanged(UsageError):
    """A file changed while the project was read, so that the bytes read are not the project's state at any moment."""


@dataclass(frozen=True, slots=True)
class Snapshot(Listing):
    """The entries of a project at one moment, with the digest of their content."""

    digest: str = ""  # SHA-256, hex


def take_snapshot(listing: Listing, index: FileIndex | None = None) -> Snapshot:
    """Read every file whose content hash the listing lacks, and return the entries with the digest of the project.

    Of a file that grows, such as a log, the snapshot has the bytes that the file had when it was listed. A file that
    changes while it is read is read again until two readings agree. Some of the files in the index are read too: if one
    differs from its entry, the index is wrong, and every file is read. `files.archives.digest` says what the digest
    names; the server computes it too, from what it gets.

    Args:
        listing: of the project.
        index: the one with which the files were listed; it gets the hashes of the files that are read.

    Raises:
        ProjectChanged: a file was replaced after it was listed, or changes too fast.
        UsageError: a file cannot be read.

    Example:
        take_snapshot(list_project_files(Path("examples/ai-toaster"))).digest
    """
    index = index or FileIndex(listing.folder)
    entries = listing.entries
    if not _is_right(listing, index):
        index.forget_contents()
        entries = tuple(entry._replace(content="") for entry in entries)
    unread = [entry for entry in entries if entry.kind is EntryKind.FILE and not entry.content]
    if unread:
        contents = dict(zip((entry.path for entry in unread), _hash_files(listing.folder, unread, index), strict=True))
        entries = tuple(
            entry._replace(content=contents[entry.path]) if entry.path in contents else entry for entry in entries
        )
    digest = digest_entries((entry, entry.content) for entry in entries)
    return Snapshot(listing.folder, entries, digest=digest)


def pack_contents(snapshot: Snapshot, contents: Collection[str]) -> Iterator[bytes]:
    """Yield the records of contents that the server lacks (see `files.archives.pieces`), each content once.

    The server then names the contents that differ from the snapshot: these files changed after it was taken.

    Args:
        snapshot: of the project.
        contents: SHA-256 (hex) of the contents.

    Raises:
        ProjectChanged: a file became shorter, or is not a file any more.
        UsageError: a file cannot be read any more.
    """
    left = set(contents)
    for entry in snapshot.entries:
        if entry.kind is EntryKind.FILE and entry.content in left:
            left.remove(entry.content)
            yield RECORD.pack(entry.size)
            with _open_content(snapshot.folder, entry) as handle:
                yield from _read_content(handle, entry)


def pack_snapshot(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield an uncompressed tar of the snapshot in pieces; one snapshot always gives the same bytes.

    Raises:
        ProjectChanged: a file changed after the snapshot was taken.
        UsageError: a file cannot be read any more.

    Example:
        client.put_snapshot(snapshot.digest, pack_snapshot(snapshot))
    """
    buffer = bytearray()
    for piece in _yield_records(snapshot):
        buffer += piece
        if len(buffer) >= _CHUNK:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)


def _yield_records(snapshot: Snapshot) -> Iterator[bytes]:
    from hashlib import sha256

    for entry in snapshot.entries:
        yield write_header(entry)
        if entry.kind is not EntryKind.FILE:
            continue
        content = sha256()
        with _open_content(snapshot.folder, entry) as handle:
            for piece in _read_content(handle, entry):
                content.update(piece)
                yield piece
        if content.hexdigest() != entry.content:
            raise make_changed_error(entry)
        yield pad_content(entry.size)
    yield END


def _is_right(listing: Listing, index: FileIndex) -> bool:
    """Return False when the index is wrong about one of a few files that it knows."""
    indexed = [entry for entry in listing.entries if entry.content and entry.size <= _LARGEST_PROBE]
    step = max(1, len(indexed) // _PROBES)
    for entry in indexed[time.time_ns() // 1000 % step :: step]:  # other files each time
        content, state, _ = _hash_once(listing.folder, entry)
        if state is not None and content != entry.content and index.find_content(entry.path, state) == entry.content:
            return False
    return True


def _hash_files(folder: Path, entries: list[ArchiveEntry], index: FileIndex) -> list[str]:
    """Return the SHA-256 (hex) of the files, read side by side."""
    parts = [entries[start : start + _PART] for start in range(0, len(entries), _PART)]
    workers = min(os.cpu_count() or 1, _MOST_THREADS)
    if workers == 1 or (len(parts) == 1 and sum(entry.size for entry in entries) < _SMALL):
        return [_hash_content(folder, entry, index) for entry in entries]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        hashed = [pool.submit(_hash_part, folder, part, index) for part in parts]
        try:
            return [content for part in hashed for content in part.result()]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _hash_part(folder: Path, entries: list[ArchiveEntry], index: FileIndex) -> list[str]:
    return [_hash_content(folder, entry, index) for entry in entries]


def _hash_content(folder: Path, entry: ArchiveEntry, index: FileIndex) -> str:
    """Return the SHA-256 (hex) of one state of a file."""
    before = ""
    for _ in range(_MOST_READS):
        content, state, begun = _hash_once(folder, entry)
        if state is not None:
            index.note_content(entry.path, state, content, begun)
        if state is not None or content == before:
            return content
        before = content
    raise make_changed_error(entry)


def read_whole_file(folder: str, entry: ArchiveEntry, index: FileIndex, content: memoryview) -> str:
    """Read a file at once; return its SHA-256 (hex), or an empty text when the file changes or has changed.

    Args:
        folder: of the project.
        entry: the file.
        index: gets the hash.
        content: gets the bytes; it has the size of the entry.

    Raises:
        UsageError: the file cannot be read.
    """
    from hashlib import sha256

    begun_at = time.time_ns()
    try:
        handle = os.open(f"{folder}/{entry.path}", _OPEN)
        try:
            begun = os.fstat(handle)
            size = os.readv(handle, (content,))
            ended = os.fstat(handle)
        finally:
            os.close(handle)
    except OSError as error:
        read_error = _make_read_error(entry, error)
        if isinstance(read_error, ProjectChanged):
            return ""
        raise read_error from None
    if size != entry.size or not _is_still(begun, ended, entry):
        return ""
    name = sha256(content).hexdigest()
    index.note_content(entry.path, read_state(ended), name, begun_at)
    return name


def _hash_once(folder: Path, entry: ArchiveEntry) -> tuple[str, FileState | None, int]:
    """Return the SHA-256 (hex) of a file, its state (None if it changed meanwhile), and when reading began.

    A file that has grown since it was listed has no state either: its content is that of no whole file.
    """
    from hashlib import sha256

    begun_at = time.time_ns()
    content = sha256()
    with _open_content(folder, entry) as handle:
        begun = os.fstat(handle)
        for piece in _read_content(handle, entry):
            content.update(piece)
        ended = os.fstat(handle)
    return content.hexdigest(), read_state(ended) if _is_still(begun, ended, entry) else None, begun_at


def _is_still(begun: os.stat_result, ended: os.stat_result, entry: ArchiveEntry) -> bool:
    """Return True when nothing changed a file since it was listed and while it was read."""
    return begun.st_mtime_ns == ended.st_mtime_ns and begun.st_size == ended.st_size == entry.size


@contextmanager
def _open_content(folder: Path, entry: ArchiveEntry) -> Iterator[int]:
    """Open a file for reading; errors of opening and reading become those of the project."""
    handle = -1
    try:
        handle = os.open(os.path.join(folder, entry.path), _OPEN)
        yield handle
    except OSError as error:
        raise _make_read_error(entry, error) from None
    finally:
        if handle >= 0:
            os.close(handle)


def _make_read_error(entry: ArchiveEntry, error: OSError) -> UsageError:
    if error.errno in _CHANGED:
        return make_changed_error(entry)
    return UsageError(
        f"cannot read {format_path(entry.path)}: {error.strerror}",
        "make it readable, or add it to .risemlignore if the jobs do not need it",
    )


def _read_content(handle: int, entry: ArchiveEntry) -> Iterator[bytes]:
    """Yield the first `entry.size` bytes of a file: all that it had when it was listed."""
    left = entry.size
    while left and (piece := os.read(handle, min(left, _CHUNK))):
        left -= len(piece)
        yield piece
    if left:
        raise make_changed_error(entry)


def make_changed_error(entry: ArchiveEntry) -> ProjectChanged:
    """Return the error for a file that was replaced after it was listed."""
    return ProjectChanged(
        f"{format_path(entry.path)} changed while the project was being synced",
        "run the command again, or add the file to .risemlignore if the jobs do not need it",
    )
