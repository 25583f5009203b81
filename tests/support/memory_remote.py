"""An address of data in memory, for tests: its calls can fail, and its files can change."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import field

from riseml.base.records import dataclass
from riseml.data_stores.remote import RemoteFile, SourceChanged


def _do_nothing(_: RemoteFile) -> None:
    """Let a range be read."""


@dataclass(slots=True)
class MemoryRemote:
    """Files by their paths.

    Example:
        remote = MemoryRemote({"a.txt": b"hello"})
        remote.troubles.append(Away("the store answers 503"))  # the next call raises it
    """

    contents: dict[str, bytes]
    troubles: list[Exception] = field(default_factory=list)  # the errors that the next calls raise, each once
    before_read: Callable[[RemoteFile], None] = _do_nothing
    ranges: list[tuple[str, int, int]] = field(default_factory=list)  # the ranges that were read

    def list_files(self) -> list[RemoteFile]:
        """Return every file; its ETag is its MD5."""
        self._raise_next()
        return [RemoteFile(path, len(data), _make_etag(data)) for path, data in sorted(self.contents.items())]

    def read(self, file: RemoteFile, start: int, stop: int) -> bytes:
        """Return a range of a file."""
        self.before_read(file)
        self._raise_next()
        data = self.contents[file.path]
        if _make_etag(data) != file.etag:
            raise SourceChanged(f"{file.path} changed while it was fetched")
        self.ranges.append((file.path, start, stop))
        return data[start:stop]

    def _raise_next(self) -> None:
        if self.troubles:
            raise self.troubles.pop(0)


@functools.lru_cache(maxsize=16)  # a file is read in hundreds of ranges
def _make_etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
