"""The contents of files below a folder: read with a proof, and written under another name until they are complete."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from riseml.job_programs.folder_paths import (
    FileErrorKind,
    FileInfo,
    FilesError,
    OpenAbove,
    describe_file,
    make_folders,
    make_tag,
    split_path,
    translate,
)

PART = ".riseml-part-"
"""Prefix of the name of a file that is being written. The file gets its own name when it is complete and its checksum
is right."""

PIECE = 1 << 20
"""Bytes that are read at once."""

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MORE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_UPLOAD = re.compile("[0-9a-f]{16}")
_SYNCED = 1 << 20  # bytes; larger files are on the disk before they get their name


class FileUpload(NamedTuple):
    """A file to write."""

    path: str
    upload: str  # 16 hex digits; names the unfinished file
    size: int  # bytes
    offset: int = 0  # bytes that an earlier try has written
    mtime: int = 0  # nanoseconds since 1970; 0: now
    executable: bool = False


def read_pieces(root: int, path: str, start: int, etag: str | None) -> Iterator[bytes]:
    """Yield a header, the content of a file from `start` on, and 33 bytes that prove it.

    The header is the file's size and etag: `1234 4f2a`. The content has the size that the file had in the beginning.
    After it come one byte, `0`, or `1` when the file changed meanwhile so that the copy is invalid, and the SHA-256 of
    the whole content, including the part before `start`. A file that only grows does not count as changed.

    Raises:
        FilesError: it is not a file, or its etag differs.
    """
    handle, before = _open_file(root, path)
    try:
        if etag is not None and etag != make_tag(before):
            raise FilesError(FileErrorKind.CHANGED, path)
        if start > before.st_size:
            raise FilesError(FileErrorKind.CHANGED, path)
        yield f"{before.st_size} {make_tag(before)}".encode()
        digest = hashlib.sha256()
        for piece in _read_handle(handle, 0, start):
            digest.update(piece)
        position = start
        for piece in _read_handle(handle, start, before.st_size):
            digest.update(piece)
            position += len(piece)
            yield piece
        is_whole = position == before.st_size and _is_stable(handle, before, digest.digest())
        while position < before.st_size:  # the file was truncated: fill up with zeros, which the receiver never uses
            filling = min(PIECE, before.st_size - position)
            position += filling
            yield bytes(filling)
        yield (b"0" if is_whole else b"1") + digest.digest()
    finally:
        os.close(handle)


class PartWriter:
    """Writes one file under a temporary name, and renames it when it is complete.

    After `size` bytes follows the SHA-256 of the content, 32 bytes.

    Args:
        root: descriptor of the folder.
        upload: what is written.
        owner: uid and gid of what is made; None: this process.

    Raises:
        FilesError: every method, when the file cannot be written.
    """

    def __init__(self, root: int, upload: FileUpload, owner: tuple[int, int] | None = None) -> None:
        parts = split_path(upload.path)
        if not parts or not _UPLOAD.fullmatch(upload.upload) or parts[-1].startswith(PART.encode()):
            raise FilesError(FileErrorKind.BAD_PATH, upload.path)
        self._upload = upload
        self._owner = owner
        self._digest = hashlib.sha256()
        self._got = upload.offset
        self._proof = b""
        self._name = parts[-1]
        self._part = (PART + upload.upload).encode()
        self._folder = make_folders(root, parts[:-1], upload.path, owner)
        try:
            self._check_target()
            self._handle = self._open_part()
        except BaseException:
            os.close(self._folder)
            raise

    def write(self, piece: bytes) -> None:
        """Take the next bytes."""
        content = piece[: self._upload.size - self._got]
        remainder = piece[self._upload.size - self._got :]
        self._proof += remainder
        if len(self._proof) > self._digest.digest_size:
            raise FilesError(FileErrorKind.DAMAGED, self._upload.path)
        self._digest.update(content)
        view = memoryview(content)
        try:
            while view:
                view = view[os.write(self._handle, view) :]
        except OSError as error:
            raise translate(error, self._upload.path) from None
        self._got += len(content)

    def finish(self) -> FileInfo:
        """Give the file its name, in place of a file that is there."""
        upload = self._upload
        if self._got < upload.size or len(self._proof) < self._digest.digest_size:
            raise FilesError(FileErrorKind.INCOMPLETE, upload.path, str(self._got))
        if self._proof != self._digest.digest():
            raise FilesError(FileErrorKind.DAMAGED, upload.path)
        try:
            if self._owner is not None:
                os.fchown(self._handle, *self._owner)
            os.fchmod(self._handle, 0o755 if upload.executable else 0o644)
            if upload.mtime:
                os.utime(self._handle, ns=(upload.mtime, upload.mtime))
            if upload.size > _SYNCED:
                os.fsync(self._handle)
            os.rename(self._part, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError as error:
            raise translate(error, upload.path) from None
        return describe_file(self._folder, self._name, self._name, os.fstat(self._handle))

    def discard(self) -> None:
        """Remove what was written; what has its name stays."""
        try:
            os.unlink(self._part, dir_fd=self._folder)
        except OSError:
            return

    def close(self) -> None:
        """Close the file. What was written so far stays for the next try, unless it was discarded."""
        os.close(self._handle)
        os.close(self._folder)

    def _check_target(self) -> None:
        try:
            status = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except OSError:
            return
        if stat.S_ISDIR(status.st_mode):
            raise FilesError(FileErrorKind.IS_FOLDER, self._upload.path)

    def _open_part(self) -> int:
        offset = self._upload.offset
        try:
            if not offset:
                return os.open(self._part, _NEW, 0o600, dir_fd=self._folder)
            with open(os.open(self._part, _FILE, dir_fd=self._folder), "rb") as before:
                status = os.fstat(before.fileno())
                # An earlier try that broke off may still be writing the bytes that had arrived: the same bytes at the
                # same offsets.
                if not stat.S_ISREG(status.st_mode) or status.st_size < offset:
                    raise FilesError(FileErrorKind.CHANGED, self._upload.path)
                for piece in _read_handle(before.fileno(), 0, offset):
                    self._digest.update(piece)
            handle = os.open(self._part, _MORE, dir_fd=self._folder)
            os.lseek(handle, offset, os.SEEK_SET)
            return handle
        except OSError as error:
            raise translate(error, self._upload.path) from None


def _open_file(root: int, path: str) -> tuple[int, os.stat_result]:
    with OpenAbove(root, split_path(path), path) as (folder, name):
        try:
            handle = os.open(name, _FILE, dir_fd=folder)
        except OSError as error:
            raise translate(error, path) from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise FilesError(FileErrorKind.IS_FOLDER if stat.S_ISDIR(status.st_mode) else FileErrorKind.SPECIAL, path)
    return handle, status


def _read_handle(handle: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        piece = os.pread(handle, min(PIECE, end - start), start)
        if not piece:
            return
        start += len(piece)
        yield piece


def _is_stable(handle: int, before: os.stat_result, digest: bytes) -> bool:
    """Return True when a file has not changed since its size was read, except for appended bytes."""
    after = os.fstat(handle)
    if (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns):
        return True
    again = hashlib.sha256()
    for piece in _read_handle(handle, 0, before.st_size):
        again.update(piece)
    return again.digest() == digest
