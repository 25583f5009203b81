"""The index of a project: the content hash of each file when it was last read, so that unchanged files are not read.

As in git's index, a file counts as unchanged when its size, its times of change (mtime and ctime, in ns), its inode and
its device are the same. A file that changed less than two seconds before it was read is not entered: another change in
the same tick of the file system's clock would look the same. So it is read again.

The index is a cache. One that is damaged, of another project or another user's is not used.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct

from riseml.files.project.cache_file import CacheFile

FileState = tuple[int, int, int, int, int]
"""Size, mtime and ctime in ns, inode and device of a file."""

_KIND = "index 1"
_STATE = Struct("<QqqQQ32s")
_COUNT = Struct("<QQ")  # files, bytes of the folder's path
_RACY = 2_000_000_000  # ns; a tick of the coarsest clock of a file system (FAT)
_MOST_FILES = 64  # indexes of this many projects are kept


def read_state(status: os.stat_result) -> FileState:
    """Return what says whether a file has changed."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)


class FileIndex:
    """The index of one project. It keeps only the entries of files that were looked up or noted.

    Args:
        folder: of the project.
        path: of the file; None: nothing is kept.
    """

    def __init__(self, folder: Path, path: Path | None = None) -> None:
        self._folder = os.fsencode(os.path.realpath(folder))
        self._file = None if path is None else CacheFile(path, _KIND, _MOST_FILES)
        self._stored_entries = self._load_entries()
        self._used_entries: dict[str, tuple[FileState, bytes]] = {}
        self._is_new = False

    def find_content(self, path: str, state: FileState) -> str:
        """Return the SHA-256 (hex) of a file that has this state; empty when it must be read."""
        entry = self._stored_entries.get(path)
        if entry is None or entry[0] != state:
            return ""
        self._used_entries[path] = entry
        return entry[1].hex()

    def note_content(self, path: str, state: FileState, content: str, begun: int) -> None:
        """Enter a file that was read.

        Args:
            path: of the file.
            state: the same before and after the file was read.
            content: SHA-256 (hex).
            begun: when reading began, in ns since 1970.
        """
        if max(state[1], state[2]) + _RACY < begun:
            self._used_entries[path] = (state, bytes.fromhex(content))
            self._is_new = True

    def forget_contents(self, paths: list[str] | None = None) -> None:
        """Forget some files, or all: they are read again."""
        self._is_new = True
        for path in list(self._stored_entries) if paths is None else paths:
            self._stored_entries.pop(path, None)
            self._used_entries.pop(path, None)

    def save(self) -> None:
        """Write the index, when something in it is new. A disk that is full or read-only makes no error."""
        if self._file is None or not (self._is_new or len(self._used_entries) != len(self._stored_entries)):
            return
        self._file.write(self._pack())
        self._stored_entries = dict(self._used_entries)
        self._is_new = False

    def _pack(self) -> bytes:
        states = b"".join(_STATE.pack(*state, content) for state, content in self._used_entries.values())
        paths = os.fsencode("\0".join(self._used_entries))
        return _COUNT.pack(len(self._used_entries), len(self._folder)) + self._folder + states + paths

    def _load_entries(self) -> dict[str, tuple[FileState, bytes]]:
        body = b"" if self._file is None else self._file.read()
        if not body:
            return {}
        count, length = _COUNT.unpack_from(body)
        at = _COUNT.size + length
        end = at + count * _STATE.size
        paths = os.fsdecode(body[end:]).split("\0") if count else []
        if body[_COUNT.size : at] != self._folder or len(paths) != count:
            return {}
        rows = _STATE.iter_unpack(body[at:end])
        return {path: (row[:5], row[5]) for path, row in zip(paths, rows, strict=True)}
