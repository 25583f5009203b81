"""The two ends of a copy: a folder of this machine, and a storage of the server. Both list, read and write alike."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from riseml.base.errors import NotFound, Refused, UsageError
from riseml.client.file_client import Content
from riseml.files.storage_files import ListRequest, fill_file, translate_files_error
from riseml.job_programs.folder_contents import FileUpload, PartWriter, read_pieces
from riseml.job_programs.folder_links import make_link
from riseml.job_programs.folder_listing import Page, list_page
from riseml.job_programs.folder_paths import FileInfo, look_at, make_folder


class CopyEndpoint(Protocol):
    """One end of a copy; `FileClient` is the other kind."""

    def list_files(self, request: ListRequest) -> Page:
        """Return a part of a listing."""

    def look_at(self, path: str) -> FileInfo | None:
        """Return the file, folder or link at a path; None when nothing is there."""

    def make_folder(self, path: str) -> None:
        """Make a folder and the folders above it."""

    def make_link(self, path: str, target: str) -> None:
        """Make a link to a place below the folder; make the folders above the link."""

    def read_file(self, path: str, start: int = 0, etag: str = "") -> Iterator[bytes]:
        """Yield a header, a content and its proof, as `folder_contents.read_pieces` does."""

    def write_file(self, upload: FileUpload, content: Content) -> None:
        """Write a file; it has its final name when this returns."""


class LocalEndpoint:
    """The files below a folder of this machine. No link below it is followed.

    Args:
        folder: exists; its path may contain links, because the user has named it.

    Raises:
        NotFound: there is no such folder.
        Refused: it cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._place = "" if folder == Path(".") else str(folder)
        try:
            self._root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"there is no folder {folder}", "make it with `mkdir -p`") from None
        except OSError as error:
            raise Refused(f"{folder} cannot be opened: {error.strerror}") from None

    def close(self) -> None:
        os.close(self._root)

    def list_files(self, request: ListRequest) -> Page:
        with translate_files_error(self._place):
            return list_page(self._root, request.path, request.after, request.limit, deep=request.deep)

    def look_at(self, path: str) -> FileInfo | None:
        try:
            with translate_files_error(self._place):
                return look_at(self._root, path)
        except NotFound:
            return None

    def make_folder(self, path: str) -> None:
        with translate_files_error(self._place):
            make_folder(self._root, path)

    def make_link(self, path: str, target: str) -> None:
        with translate_files_error(self._place):
            make_link(self._root, path, target)

    def read_file(self, path: str, start: int = 0, etag: str = "") -> Iterator[bytes]:
        with translate_files_error(self._place):
            yield from read_pieces(self._root, path, start, etag or None)

    def write_file(self, upload: FileUpload, content: Content) -> None:
        upload = upload._replace(upload=os.urandom(8).hex())
        with translate_files_error(self._place), fill_file(PartWriter(self._root, upload)) as writer:
            for piece in content(0):
                writer.write(piece)


def split_local(path: Path) -> tuple[Path, str]:
    """Return the folder that a path of this machine is in, and its name.

    Raises:
        UsageError: it has no name, such as `/`.
    """
    if path.name in ("", ".."):
        path = path.resolve()
    if not path.name:
        raise UsageError(f"{path} has no name of its own", "name a file or a folder in it")
    return path.parent, path.name
