"""The files below a folder of this machine, for the server and for the host in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from riseml.job_programs.folder_contents import Incoming, PartWriter, read_pieces
from riseml.job_programs.folder_links import make_link
from riseml.job_programs.folder_listing import Page, Removed, list_page, remove_tree
from riseml.job_programs.folder_paths import Seen, count_free, make_folder
from riseml.storage_files import FileWriter, ListOrder, translate_files_error

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

    def list_files(self, wanted: ListOrder) -> Page:
        with translate_files_error(self._place), _opened(self._open_root) as root:
            return list_page(root, wanted.path, wanted.after, wanted.limit, deep=wanted.deep)

    def read_file(self, path: str, start: int, etag: str | None) -> Iterator[bytes]:
        with translate_files_error(self._place), _opened(self._open_root) as root:
            yield from read_pieces(root, path, start, etag)

    def write_file(self, order: Incoming) -> FileWriter:
        with translate_files_error(self._place), _opened(self._open_target) as root:
            return _LocalWriter(self._place, PartWriter(root, order, self._owner))

    def make_folder(self, path: str) -> None:
        with translate_files_error(self._place), _opened(self._open_target) as root:
            make_folder(root, path, self._owner)

    def make_link(self, path: str, target: str) -> Seen:
        with translate_files_error(self._place), _opened(self._open_target) as root:
            return make_link(root, path, target, self._owner)

    def remove_files(self, path: str, limit: int) -> Removed:
        with translate_files_error(self._place), _opened(self._open_root) as root:
            return remove_tree(root, path, limit)

    def count_free(self) -> int:
        with translate_files_error(self._place), _opened(self._open_root) as root:
            return count_free(root)


class _LocalWriter:
    """Writes one file; its errors are those that users see."""

    def __init__(self, place: str, part: PartWriter) -> None:
        self._place = place
        self._part = part

    def write(self, piece: bytes) -> None:
        with translate_files_error(self._place):
            self._part.write(piece)

    def finish(self) -> Seen:
        with translate_files_error(self._place):
            return self._part.finish()

    def discard(self) -> None:
        self._part.discard()

    def close(self) -> None:
        self._part.close()


@contextmanager
def _opened(open_root: OpenRoot) -> Iterator[int]:
    root = open_root()
    try:
        yield root
    finally:
        os.close(root)
