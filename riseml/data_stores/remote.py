"""One address of data, as the server reads it: a list of files, and ranges of bytes of each.

    folder = open_remote(parse_data_url("s3://datasets/mnist"), store)
    for file in folder.list_files(): folder.read(file, 0, file.size)

A range is read only from the very bytes that the list named: the size and the ETag must be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from riseml.base.errors import EngineError
from riseml.base.records import dataclass
from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import OBJECT_STORES, DataUrl

MOST_FILES = 1_000_000
"""Files of one address."""

_LONGEST_NAME = 255  # bytes
_LONGEST_PATH = 3000  # bytes


class StoreUnavailable(EngineError):
    """The store does not answer, or says that it cannot answer now: another try may help."""


class TransferInterrupted(StoreUnavailable):
    """The connection ended in the middle of an answer: a smaller range may arrive completely."""


class SourceChanged(EngineError):
    """A file differs from the one in the list, or is gone."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file of an address."""

    path: str  # below the address; of a single file its name
    size: int  # bytes
    etag: str  # changes with the content: the ETag, or a time; empty: the store sends neither
    key: str = ""  # key of an object: its whole path in the bucket


class Remote(Protocol):
    """An address of data. Several threads read it at the same time."""

    def list_files(self) -> Sequence[RemoteFile]:
        """Return every file, sorted by path.

        Raises:
            Away: another try may help.
            EngineError: there is nothing, or it may not be read (permanent).
        """

    def read(self, file: RemoteFile, start: int, stop: int) -> bytes:
        """Return a range of bytes of a file, always the whole range.

        Raises:
            Broken: the connection ended before the last byte.
            Away: another try may help.
            Changed: the file differs from the one in the list.
            EngineError: it may not be read (permanent).
        """


def open_remote(url: DataUrl, store: Store) -> Remote:
    """Return an object that reads the files of an address; no request is sent yet."""
    if url.scheme in OBJECT_STORES:
        from riseml.data_stores.object_folder import ObjectFolder  # imports obstore: only where data is fetched

        return ObjectFolder(url, store)
    from riseml.data_stores.web_file import WebFile

    return WebFile(url, store)


def check_names(url: DataUrl, files: Sequence[RemoteFile]) -> None:
    """Refuse names that cannot be files below one folder.

    Raises:
        EngineError: there is such a name (permanent).
    """
    paths = {file.path for file in files}
    for path in paths:
        names = path.split("/")
        if any(name in ("", ".", "..") or "\0" in name or len(name.encode()) > _LONGEST_NAME for name in names):
            raise _refuse_name(url, path, "which no file can have")
        if len(path.encode()) > _LONGEST_PATH:
            raise _refuse_name(url, path, "which is too long")
        if any("/".join(names[:end]) in paths for end in range(1, len(names))):
            raise _refuse_name(url, path, "and another object has the name of its folder")


def _refuse_name(url: DataUrl, path: str, why: str) -> EngineError:
    return EngineError(
        f"{url} has an object of the name {path[:200]!a}, {why}", "rename it in the store", permanent=True
    )
