"""The file pool.yml on disk: its content, and whether it has changed."""

from __future__ import annotations

from pathlib import Path

from riseml.base.errors import UsageError
from riseml.spec.pool.loader import load_pool
from riseml.spec.pool.types import PoolSpec

FileStamp = tuple[int, int, int]
"""Changes whenever a file changes: inode, size in bytes, modification time in nanoseconds."""


class PoolFile:
    """pool.yml, and the version of it that was read last.

    file = PoolFile(settings.pool_file)
    spec = file.load()  # None: there is no such file
    file.has_changed()  # False, until a user edits, creates or removes it
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: FileStamp | None = None  # stamp of the version that was read last; None: there was no file

    def exists(self) -> bool:
        """Return True when the file is there now."""
        return self._path.exists()

    def has_changed(self) -> bool:
        """Return True when the file is not the version that was read last."""
        return self._find_stamp() != self._read

    def mark_read(self) -> None:
        """Mark the present version as read."""
        self._read = self._find_stamp()

    def load(self) -> PoolSpec | None:
        """Return what the file says, None without a file. The version counts as read even when it has problems.

        Raises:
            UsageError: the file cannot be read.
            SpecError: it has problems.
        """
        self._read = self._find_stamp()  # read before the content, so that the next pass notices a change in between
        if self._read is None:
            return None
        try:
            text = self._path.read_bytes()
        except OSError as error:
            raise UsageError(
                f"{self._path} cannot be read: {error.strerror}", "make it readable, or remove it"
            ) from error
        return load_pool(text, self._path)

    def _find_stamp(self) -> FileStamp | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns
