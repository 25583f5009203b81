"""The interface to the files of a storage: the methods that the server, or a command on its own machine, calls.

Behind it is a folder of this machine (`local_files`), or a host whose files the server does not see, through a
helper container (`executors.capabilities.StorageAccess`). An object store gets an implementation of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from riseml.base.errors import Conflict, EngineError, NotFound, Refused, RisemlError, UsageError
from riseml.base.records import dataclass
from riseml.job_programs.folder_contents import FileUpload
from riseml.job_programs.folder_listing import Page, Removed
from riseml.job_programs.folder_paths import FileErrorKind, FileInfo, FilesError

MOST_ENTRIES = 50_000
"""Entries of one page, and things that one call removes."""


@dataclass(frozen=True, slots=True)
class ListRequest:
    """Which part of a listing is wanted. See `folder_listing.list_page`."""

    path: str
    after: str | None = None
    limit: int = MOST_ENTRIES
    deep: bool = False


class FileWriter(Protocol):
    """One file that is being written. See `folder_contents.PartWriter`."""

    def write(self, piece: bytes) -> None:
        """Take the next bytes."""

    def finish(self) -> FileInfo:
        """Check that the file is complete and that its checksum is right; then give it its name."""

    def discard(self) -> None:
        """Remove what was written."""

    def close(self) -> None:
        """Close the file; what was written stays for the next try."""


@contextmanager
def fill_file(writer: FileWriter) -> Iterator[FileWriter]:
    """Write a file in a block: it gets its name at the end of the block, and is removed where the block raises."""
    try:
        yield writer
        writer.finish()
    except BaseException:
        writer.discard()
        raise
    finally:
        writer.close()


class StorageFiles(Protocol):
    """The files below one folder of a storage. No method follows a link, or leaves the folder.

    Raises:
        RisemlError: every method, when a path is not what it should be, or the storage fails.
    """

    def list_files(self, request: ListRequest) -> Page:
        """Return a part of a listing; with the limit 0 only what the path names."""

    def read_file(self, path: str, start: int, etag: str | None) -> Iterator[bytes]:
        """Yield a header, the content from `start` on, and its proof: see `folder_contents.read_pieces`."""

    def write_file(self, upload: FileUpload) -> FileWriter:
        """Begin to write a file; make the folders above it."""

    def make_folder(self, path: str) -> None:
        """Make a folder and the folders above it."""

    def make_link(self, path: str, target: str) -> FileInfo:
        """Make a link to a place below the folder; make the folders above the link."""

    def remove_files(self, path: str, limit: int) -> Removed:
        """Remove a path with all below it, or a part of it."""

    def count_free(self) -> int:
        """Return how many bytes are free on the disk of the folder."""

    def count_used(self) -> int:
        """Return how many bytes of a disk the folder takes, with everything in it."""


@contextmanager
def translate_files_error(place: str) -> Iterator[None]:
    """Raise errors of paths and files as the errors that users see.

    Args:
        place: what the paths are below, for people: `output://4`.
    """
    try:
        yield
    except FilesError as error:
        raise describe_trouble(error, place) from None


def describe_trouble(error: FilesError, place: str) -> RisemlError:
    """Return the error that users see."""
    path = f"{place}/{error.path}" if error.path and place else error.path or place
    make, words, hint = _SENTENCES[error.trouble]
    return make(f"{path} {words}" + (f": {error.detail}" if error.trouble in _DETAILED else ""), hint)


_DETAILED = (FileErrorKind.DENIED, FileErrorKind.FAILED)
_CHANGED_HINT = "copy it again when nothing writes to it"
_SENTENCES: dict[FileErrorKind, tuple[type[RisemlError], str, str | None]] = {
    FileErrorKind.BAD_PATH: (
        UsageError,
        "is not a path that can be used",
        "names are at most 255 bytes, and none is empty, `.` or `..`",
    ),
    FileErrorKind.MISSING: (NotFound, "does not exist", "`riseml ls` shows what is there"),
    FileErrorKind.NOT_FOLDER: (UsageError, "is not in a folder", "`riseml ls` shows what is there"),
    FileErrorKind.IS_FOLDER: (UsageError, "is a folder", "name a file in it, or another target"),
    FileErrorKind.LINK: (Refused, "is behind a link, and riseml follows none", "name what the link leads to"),
    FileErrorKind.OUTSIDE: (
        Refused,
        "would be a link that leads out",
        "links lead to a place below the storage: `..` at the beginning alone, and no path that begins with /",
    ),
    FileErrorKind.SPECIAL: (Refused, "is neither a file nor a folder", "only files and folders are copied"),
    FileErrorKind.EXISTS: (Conflict, "is there already", "name another target"),
    FileErrorKind.CHANGED: (Conflict, "changed while it was copied", _CHANGED_HINT),
    FileErrorKind.DAMAGED: (Conflict, "did not arrive as it was sent; nothing was kept", "copy it again"),
    FileErrorKind.INCOMPLETE: (Conflict, "was not sent completely; nothing was changed", "copy it again"),
    FileErrorKind.DENIED: (Refused, "may not be used so", "look at its owner and its mode"),
    FileErrorKind.FULL: (Refused, "was not written: no space is left there", "free some space, then copy it again"),
    FileErrorKind.DEEP: (Refused, "has more than 200 folders in each other", "riseml goes no deeper"),
    FileErrorKind.FAILED: (EngineError, "cannot be used", None),
}
