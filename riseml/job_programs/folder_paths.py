"""Paths below one folder, by descriptors: no link is followed on the way.

Every folder is opened in the one above it with O_NOFOLLOW. So no path leads outside of the folder, whatever a job has
put there, and whatever it changes meanwhile. The server uses these modules (`folder_paths`, `folder_removal`,
`folder_listing`, `folder_contents`, `folder_links`) for its own disk, the command line for the user's, and
`file_service` in a helper container for a storage that neither of them sees.

Paths are text: `/` between names, no `.` and no `..`. A byte that is not UTF-8 is written as `%FF`, and `%` as `%25`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

MOST_DEPTH = 200
"""Most nested folders that are visited."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags of a folder that is opened in another one."""

_FEW_FILES = 256
"""A disk that takes fewer files is full."""

_ODD = re.compile("[%\udc80-\udcff]")
_ESCAPE = re.compile(b"%([0-9A-Fa-f]{2})")


class FileErrorKind(Enum):
    """Why a file was not listed, read, written or removed."""

    BAD_PATH = "bad path"
    MISSING = "missing"
    NOT_FOLDER = "not a folder"
    IS_FOLDER = "a folder"
    LINK = "a link"
    OUTSIDE = "a link that leads out"
    SPECIAL = "neither a file nor a folder"
    EXISTS = "there already"
    CHANGED = "changed"
    DAMAGED = "damaged"
    INCOMPLETE = "incomplete"
    DENIED = "denied"
    FULL = "full"
    DEEP = "too deep"
    FAILED = "failed"


class FilesError(Exception):
    """One path could not be listed, read, written or removed."""

    def __init__(self, trouble: FileErrorKind, path: str, detail: str = "") -> None:
        super().__init__(trouble, path, detail)
        self.trouble = trouble
        self.path = path
        self.detail = detail


class FileInfo(NamedTuple):
    """A file, folder, link, or something else."""

    path: str  # below the requested folder
    kind: str  # `file`, `folder`, `link` or `other`
    size: int  # bytes; 0 for everything but files
    mtime: int  # nanoseconds since 1970
    executable: bool
    target: str | None  # target of a link
    etag: str  # changes when the file does


def encode_name(name: bytes) -> str:
    """Return bytes of a path as text."""
    return _ODD.sub(lambda odd: "%%%02X" % (ord(odd[0]) & 0xFF), name.decode("utf-8", "surrogateescape"))


def decode_name(text: str) -> bytes:
    """Return the bytes that a text stands for.

    Raises:
        FilesError: it cannot be a path.
    """
    try:
        return _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), text.encode("utf-8"))
    except UnicodeEncodeError:
        raise FilesError(FileErrorKind.BAD_PATH, "") from None


def show_name(path: str) -> str:
    r"""Return a path on one line, with every character escaped that a terminal does not show as it is.

    Example:
        >>> show_name("a\nb%FF")
        'a\\nb\\xff'
    """
    text = decode_name(path).decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(map(_show_character, text))


def split_path(path: str) -> list[bytes]:
    """Return the names of a path; none for the folder itself.

    Raises:
        FilesError: a name could lead elsewhere, or is too long.
    """
    parts = decode_name(path).split(b"/") if path else []
    for part in parts:
        if part in (b"", b".", b"..") or b"\0" in part or len(part) > 255:
            raise FilesError(FileErrorKind.BAD_PATH, path)
    if len(parts) > MOST_DEPTH:
        raise FilesError(FileErrorKind.DEEP, path)
    return parts


def look_at(root: int, path: str) -> FileInfo:
    """Return the entry at a path; a link is not followed.

    Raises:
        FilesError: nothing is there.
    """
    parts = split_path(path)
    if not parts:
        return describe_file(root, b"", b"", os.fstat(root))
    with OpenAbove(root, parts, path) as (folder, name):
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            raise translate(error, path) from None
        return describe_file(folder, name, name, status)


class OpenAbove:
    """Gives the open folder that a path is in, and its last name.

    Raises:
        FilesError: there is no such folder.
    """

    def __init__(self, root: int, parts: list[bytes], path: str) -> None:
        if not parts:
            raise FilesError(FileErrorKind.IS_FOLDER, path)
        self._folder = enter_folder(root, parts[:-1], path)
        self._name = parts[-1]

    def __enter__(self) -> tuple[int, bytes]:
        return self._folder, self._name

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)


def count_free(root: int) -> int:
    """Return how many bytes a user who is not root can still write to the disk of an open folder; 0 when it takes few
    more files, however small.
    """
    disk = os.fstatvfs(root)
    lacks_files = disk.f_files > 0 and disk.f_favail < _FEW_FILES  # a disk without a limit of files has 0 of both
    return 0 if lacks_files else disk.f_frsize * disk.f_bavail


def enter_folder(root: int, parts: list[bytes], path: str) -> int:
    """Return the folder that a path leads to, open; the caller closes it.

    Raises:
        FilesError: there is no such folder.
    """
    return _descend(root, parts, path, lambda part, above: os.open(part, FOLDER, dir_fd=above))


def make_folders(root: int, parts: list[bytes], path: str, owner: tuple[int, int] | None) -> int:
    """Return the folder that a path leads to, open, after making what is missing on the way; the caller closes it.

    Raises:
        FilesError: it cannot be made, or a part of the path is not a folder.
    """
    return _descend(root, parts, path, lambda part, above: _make_inner(part, above, owner))


def _descend(root: int, parts: list[bytes], path: str, open_inner: Callable[[bytes, int], int]) -> int:
    """Open each of these folders in the one before it, and return the last one; those on the way are closed."""
    at = os.dup(root)
    for part in parts:
        try:
            inner = open_inner(part, at)
        except OSError as error:
            raise translate_step(error, at, part, path) from None
        finally:
            os.close(at)
        at = inner
    return at


def _make_inner(part: bytes, above: int, owner: tuple[int, int] | None) -> int:
    try:
        os.mkdir(part, 0o755, dir_fd=above)
        fresh = True
    except FileExistsError:
        fresh = False
    inner = os.open(part, FOLDER, dir_fd=above)
    if fresh and owner is not None:
        try:
            os.fchown(inner, *owner)
        except OSError:
            os.close(inner)
            raise
    return inner


def make_folder(root: int, path: str, owner: tuple[int, int] | None = None) -> None:
    """Make a folder with those above it; one that is there stays.

    Raises:
        FilesError: it cannot be made, or a part of the path is not a folder.
    """
    os.close(make_folders(root, split_path(path), path, owner))


def describe_file(folder: int, name: bytes, path: bytes, status: os.stat_result) -> FileInfo:
    target = None
    kind = "folder" if stat.S_ISDIR(status.st_mode) else "file" if stat.S_ISREG(status.st_mode) else "other"
    if stat.S_ISLNK(status.st_mode):
        kind = "link"
        try:
            target = encode_name(os.readlink(name, dir_fd=folder))
        except OSError:
            target = ""
    is_file = kind == "file"
    executable = is_file and bool(status.st_mode & stat.S_IXUSR)
    return FileInfo(
        encode_name(path),
        kind,
        status.st_size if is_file else 0,
        status.st_mtime_ns,
        executable,
        target,
        make_tag(status),
    )


def make_tag(status: os.stat_result) -> str:
    return f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"


def translate_step(error: OSError, folder: int, part: bytes, path: str) -> FilesError:
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        try:
            is_link = stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode)
        except OSError:
            is_link = False
        return FilesError(FileErrorKind.LINK if is_link else FileErrorKind.NOT_FOLDER, path)
    return translate(error, path)


_TROUBLES = {
    errno.ENOENT: FileErrorKind.MISSING,
    errno.ENAMETOOLONG: FileErrorKind.BAD_PATH,
    errno.ENOTDIR: FileErrorKind.NOT_FOLDER,
    errno.EISDIR: FileErrorKind.IS_FOLDER,
    errno.ELOOP: FileErrorKind.LINK,
    errno.ENXIO: FileErrorKind.SPECIAL,
    errno.EEXIST: FileErrorKind.EXISTS,
    errno.EACCES: FileErrorKind.DENIED,
    errno.EPERM: FileErrorKind.DENIED,
    errno.EROFS: FileErrorKind.DENIED,
    errno.ENOSPC: FileErrorKind.FULL,
    errno.EDQUOT: FileErrorKind.FULL,
    errno.EFBIG: FileErrorKind.FULL,
}


def translate(error: OSError, path: str) -> FilesError:
    trouble = _TROUBLES.get(error.errno or 0, FileErrorKind.FAILED)
    return FilesError(trouble, path, error.strerror or str(error))


def _show_character(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
