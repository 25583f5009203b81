"""A file that a command keeps so that a later one has less to do: without it, the later command takes longer.

A file that is missing, damaged, of another kind or not this user's alone counts as empty.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from riseml.base.folders import make_private
from riseml.base.records import dataclass

_SUM = 32  # bytes of the SHA-256 of the content
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class CacheFile:
    """One file of a folder of the user's cache."""

    path: Path
    kind: str  # what the content is, with the version of its form: `index 1`
    most: int  # files that the folder keeps

    def read(self) -> bytes:
        """Return the content; empty when there is none that this user has written."""
        data = _read_own_file(self.path)
        begin = self._begin()
        content = data[len(begin) + _SUM :]
        is_whole = data[: len(begin) + _SUM] == begin + sha256(content).digest()
        return content if is_whole else b""

    def write(self, content: bytes) -> None:
        """Replace the content. A disk that is full or read-only makes no error."""
        with suppress(OSError):
            make_private(self.path.parent)
            name = self.path.with_name(f"{os.urandom(8).hex()}.part")  # `tempfile` takes longer to import
            handle = os.open(name, _NEW, 0o600)
            try:
                with open(handle, "wb") as file:
                    file.write(self._begin() + sha256(content).digest() + content)
                os.replace(name, self.path)
            except OSError:
                os.unlink(name)
                raise
            self._remove_oldest()

    def _begin(self) -> bytes:
        return f"riseml {self.kind}\n".encode()

    def _remove_oldest(self) -> None:
        """Remove the files that have not been written for the longest time, and temporary ones of killed commands."""
        files = sorted(self.path.parent.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in files[: -self.most]:
            path.unlink(missing_ok=True)


def _read_own_file(path: Path) -> bytes:
    """Return the content of a file that only this user may write; empty when there is no such file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            return b""
        return file.read()
