"""The files below a folder of this machine, for a server that sees them without a host."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from riseml.files.storage_files import FileWriter, ListRequest, translate_files_error
from riseml.job_programs.folder_contents import PART, FileUpload, PartWriter, read_pieces
from riseml.job_programs.folder_links import make_link
from riseml.job_programs.folder_listing import Page, Removed, list_page, remove_tree
from riseml.job_programs.folder_paths import (
    FileErrorKind,
    FileInfo,
    FilesError,
    count_free,
    make_folder,
    make_folders,
    split_path,
    translate,
)
from riseml.job_programs.folder_use import count_used

_SOURCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS})

OpenRoot = Callable[[], int]
"""Opens the folder, and returns its descriptor."""


class LocalFiles:
    """The files below a folder; an implementation of `StorageFiles`.

    Args:
        place: what the folder is for people: `output://4`.
        open_root: opens it to read.
        open_target: opens it to write; makes it when it is missing.
        owner: uid and gid of what is made; None: this process.
    """

    def __init__(
        self, place: str, open_root: OpenRoot, open_target: OpenRoot, owner: tuple[int, int] | None = None
    ) -> None:
        self._place = place
        self._open_root = open_root
        self._open_target = open_target
        self._owner = owner

    def list_files(self, request: ListRequest) -> Page:
        with translate_files_error(self._place), _opened(self._open_root) as root:
            return list_page(root, request.path, request.after, request.limit, deep=request.deep)

    def read_file(self, path: str, start: int, etag: str | None) -> Iterator[bytes]:
        with translate_files_error(self._place), _opened(self._open_root) as root:
            yield from read_pieces(root, path, start, etag)

    def write_file(self, upload: FileUpload) -> FileWriter:
        with translate_files_error(self._place), _opened(self._open_target) as root:
            return _LocalWriter(self._place, PartWriter(root, upload, self._owner))

    def link_file(self, upload: FileUpload, folder: int, name: bytes) -> bool:
        """Give a file of this machine a name here, too, in place of a file that is there.

        Args:
            upload: what it becomes; its content and its size are those of the file.
            folder: descriptor of the folder that it is in.
            name: its name there.

        Returns:
            False when the file system cannot do it: the file is on another one.
        """
        with translate_files_error(self._place), _opened(self._open_target) as root:
            return _link_file(root, upload, (folder, name), self._owner)

    def make_folder(self, path: str) -> None:
        with translate_files_error(self._place), _opened(self._open_target) as root:
            make_folder(root, path, self._owner)

    def make_link(self, path: str, target: str) -> FileInfo:
        with translate_files_error(self._place), _opened(self._open_target) as root:
            return make_link(root, path, target, self._owner)

    def remove_files(self, path: str, limit: int) -> Removed:
        with translate_files_error(self._place), _opened(self._open_root) as root:
            return remove_tree(root, path, limit)

    def count_free(self) -> int:
        with translate_files_error(self._place), _opened(self._open_root) as root:
            return count_free(root)

    def count_used(self) -> int:
        with translate_files_error(self._place), _opened(self._open_root) as root:
            return count_used(root)


class _LocalWriter:
    """Writes one file; its errors are those that users see."""

    def __init__(self, place: str, part: PartWriter) -> None:
        self._place = place
        self._part = part

    def write(self, piece: bytes) -> None:
        with translate_files_error(self._place):
            self._part.write(piece)

    def finish(self) -> FileInfo:
        with translate_files_error(self._place):
            return self._part.finish()

    def discard(self) -> None:
        self._part.discard()

    def close(self) -> None:
        self._part.close()


def _link_file(root: int, upload: FileUpload, source: tuple[int, bytes], owner: tuple[int, int] | None) -> bool:
    """Link a file to a path below an open folder; no link is followed on the way. A repeated call changes nothing."""
    parts = split_path(upload.path)
    if not parts or parts[-1].startswith(PART.encode()):
        raise FilesError(FileErrorKind.BAD_PATH, upload.path)
    handle = os.open(source[1], _SOURCE, dir_fd=source[0])
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FilesError(FileErrorKind.SPECIAL, upload.path)
        above = make_folders(root, parts[:-1], upload.path, owner)
        part = f"{PART}{upload.upload}".encode()
        try:
            with suppress(FileNotFoundError):  # a server that was killed may have left it
                os.unlink(part, dir_fd=above)
            os.link(source[1], part, src_dir_fd=source[0], dst_dir_fd=above, follow_symlinks=False)
            if owner is not None:
                os.fchown(handle, *owner)
            os.fchmod(handle, 0o755 if upload.executable else 0o644)
            os.rename(part, parts[-1], src_dir_fd=above, dst_dir_fd=above)
        except OSError as error:
            if error.errno in _NO_LINKS:
                return False
            raise translate(error, upload.path) from None
        finally:
            with suppress(OSError):  # the kernel renames nothing where the file had this name, or a folder has it
                os.unlink(part, dir_fd=above)
            os.close(above)
    finally:
        os.close(handle)
    return True


@contextmanager
def _opened(open_root: OpenRoot) -> Iterator[int]:
    root = open_root()
    try:
        yield root
    finally:
        os.close(root)
