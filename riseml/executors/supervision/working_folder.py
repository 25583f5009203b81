"""What a job has written into its working folder, where that is a folder of this machine.

A job that is a process can put anything there, and change it at the same time. So every folder is opened in the folder
above it, no link is followed, and what is neither a file, a folder nor a link is left out.

A file counts as written when its inode changed after a stamp, which the executor wrote behind the last file of the
project: a job cannot set this time. A project's file that only got another mode is not written.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from riseml.base.records import dataclass
from riseml.executors.written_files import (
    MOST_LISTED,
    Unread,
    WrittenFile,
    WrittenRequest,
    is_cache,
    read_path,
)
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.job_programs.folder_paths import FOLDER, MOST_DEPTH, encode_name, show_name
from riseml.spec.scalars.output_patterns import OutputPattern, PatternPlace

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE = 1 << 20  # bytes that are read at once
_NOT_A_FOLDER = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES})


def read_written_files(folder: Path, stamp: Path, request: WrittenRequest) -> Iterator[WrittenFile | Unread]:
    """Yield what a job has written into its working folder, and what it wrote elsewhere and is wanted.

    Args:
        folder: the working folder.
        stamp: a file that was written when the folder was complete, and before the job began.
        request: what is wanted.

    Raises:
        OSError: a file cannot be read.
    """
    try:
        since = os.stat(stamp, follow_symlinks=False).st_ctime_ns
        root = os.open(folder, FOLDER)
    except OSError as error:
        if error.errno in _NOT_A_FOLDER:  # the job never began, or has removed its own folder
            return
        raise
    try:
        yield from _ChangeWalk(since, request).walk_working_folder(root)
    finally:
        os.close(root)
    for pattern in request.elsewhere:
        yield from _ChangeWalk(since, request).walk_elsewhere(pattern)


@dataclass(slots=True)
class _ChangedEntry:
    """An entry of a folder."""

    folder: int  # descriptor of the folder that it is in
    name: bytes
    path: str
    stat: os.stat_result


class _ChangeWalk:
    """Walks one folder, and ends after `MOST_LISTED` changed entries."""

    def __init__(self, since: int, request: WrittenRequest) -> None:
        self._since = since
        self._request = request
        self._project: Mapping[str, ArchiveEntry] | None = None
        self._left = MOST_LISTED

    def walk_working_folder(self, root: int) -> Iterator[WrittenFile | Unread]:
        for entry in self._walk(root, "", 0):
            if isinstance(entry, Unread):
                yield entry
            elif not is_cache(entry.path) and not self._is_of_project(entry):
                yield from _show(entry, is_wanted=self._request.wants(entry.path), is_movable=True)

    def walk_elsewhere(self, pattern: OutputPattern) -> Iterator[WrittenFile | Unread]:
        """Yield what the job has changed of the files that a pattern of another place means."""
        base = self._request.home if pattern.place is PatternPlace.HOME else "/"
        *above, last = pattern.first.split("/")
        root = _open_below(base, above)
        if root is None:
            return
        try:
            status = os.stat(os.fsencode(last), dir_fd=root, follow_symlinks=False)
        except OSError:
            os.close(root)
            return
        try:
            if not stat.S_ISDIR(status.st_mode):
                if status.st_ctime_ns > self._since and pattern.matches(pattern.first):
                    path = encode_name(os.fsencode(pattern.first))
                    yield from _show(_ChangedEntry(root, os.fsencode(last), path, status), is_wanted=True)
                return
            inner = _open_inner(root, os.fsencode(last))
            if inner is None:
                return
            try:
                for entry in self._walk(inner, f"{encode_name(os.fsencode(pattern.first))}/", len(above)):
                    if isinstance(entry, Unread):
                        yield entry
                    elif pattern.matches(read_path(entry.path)):
                        yield from _show(entry, is_wanted=True)
            finally:
                os.close(inner)
        finally:
            os.close(root)

    def _walk(self, folder: int, prefix: str, depth: int) -> Iterator[_ChangedEntry | Unread]:
        """Yield the changed entries below an open folder."""
        for name in sorted(os.listdir(folder)):
            raw = os.fsencode(name)
            path = f"{prefix}{encode_name(raw)}"
            try:
                status = os.stat(raw, dir_fd=folder, follow_symlinks=False)
            except OSError:  # a process that the job left behind has removed it
                continue
            is_changed = status.st_ctime_ns > self._since
            self._left -= is_changed
            if self._left < 0:
                if self._left == -1:
                    yield Unread(f"it has written more than {MOST_LISTED:,} files")
                return
            if not stat.S_ISDIR(status.st_mode):
                if is_changed:
                    yield _ChangedEntry(folder, raw, path, status)
            elif not is_cache(f"{path}/x"):
                inner = _open_inner(folder, raw) if depth < MOST_DEPTH else None
                if inner is None:
                    yield Unread(f"{show_name(path)} cannot be read")
                    continue
                try:
                    yield from self._walk(inner, f"{path}/", depth + 1)
                finally:
                    os.close(inner)

    def _is_of_project(self, changed: _ChangedEntry) -> bool:
        """Return True for a file of the project that has its old content."""
        if self._project is None:
            self._project = self._request.list_project()
        entry = self._project.get(changed.path)
        if entry is None:
            return False
        if stat.S_ISLNK(changed.stat.st_mode):
            return entry.kind is EntryKind.LINK
        return (entry.size, entry.mtime) == (changed.stat.st_size, changed.stat.st_mtime_ns // 10**9)


def _show(changed: _ChangedEntry, *, is_wanted: bool, is_movable: bool = False) -> Iterator[WrittenFile | Unread]:
    """Yield a file, open while the caller reads it, or a link that is wanted; nothing else.

    A job can leave files that not even its own user may read.
    """
    if stat.S_ISLNK(changed.stat.st_mode):
        if not is_wanted:
            return
        target = encode_name(os.readlink(changed.name, dir_fd=changed.folder))
        yield WrittenFile(changed.path, mtime=changed.stat.st_mtime_ns, target=target)
    elif stat.S_ISREG(changed.stat.st_mode) and not is_wanted:
        yield WrittenFile(changed.path, changed.stat.st_size, changed.stat.st_mtime_ns)
    elif stat.S_ISREG(changed.stat.st_mode):
        try:
            handle = os.open(changed.name, _FILE, dir_fd=changed.folder)
        except OSError as error:
            yield WrittenFile(changed.path, changed.stat.st_size, changed.stat.st_mtime_ns)
            yield Unread(f"{show_name(changed.path)} cannot be read: {error.strerror}")
            return
        with open(handle, "rb") as file:
            now = os.fstat(file.fileno())
            if stat.S_ISREG(now.st_mode):
                executable = bool(now.st_mode & stat.S_IXUSR)
                content = iter(lambda: file.read(_PIECE), b"")
                # a file with another name may be one of the user's own, whose mode must not change
                source = (changed.folder, changed.name) if is_movable and now.st_nlink == 1 else None
                yield WrittenFile(
                    changed.path, now.st_size, now.st_mtime_ns, executable, content=content, source=source
                )


def _open_below(base: str, parts: list[str]) -> int | None:
    """Return an open folder below `base`, without following a link below it; None: there is none."""
    try:
        at = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    for part in parts:
        inner = _open_inner(at, os.fsencode(part))
        os.close(at)
        if inner is None:
            return None
        at = inner
    return at


def _open_inner(folder: int, name: bytes) -> int | None:
    try:
        return os.open(name, FOLDER, dir_fd=folder)
    except OSError:
        return None
