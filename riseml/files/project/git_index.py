"""The index of a git repository: which files git tracks. Most questions need no parser, which takes time to import."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from riseml.files.project.index_parser import GitIndex, SubmoduleEntry

LARGEST = 1 << 26  # bytes of an index that is read; about 600,000 files
_MODE_OF_SUBMODULE = b"\0\0\xe0\0"
_MOST_SEARCHES = 32  # in the bytes of an index; after them, parsing it is faster


class LazyIndex:
    """An index that is parsed when a question needs it: most are answered by a search in its bytes.

    Args:
        data: the whole file; empty: there is none.
        hash_size: bytes of the name of an object: 20, or 32 with SHA-256.
        read_shared: returns the file that a split index names; empty: there is none.
    """

    def __init__(self, data: bytes, hash_size: int, read_shared: Callable[[str], bytes]) -> None:
        self._data = data
        self._hash_size = hash_size
        self._read_shared = read_shared
        self._parsed: GitIndex | None = None
        self._is_whole = data[4:8] in (b"\0\0\0\2", b"\0\0\0\3") and b"link\0" not in data  # each name is in it
        self._searches = _MOST_SEARCHES
        self.problem = ""  # why it cannot be read; empty: nothing is known to be wrong

    @property
    def exists(self) -> bool:
        """Whether there is an index."""
        return bool(self._data)

    def tracks(self, path: bytes, *, is_folder: bool) -> bool:
        """Return True when git tracks a file or a submodule, or something below a folder."""
        if self._is_whole and self._parsed is None and self._searches:
            self._searches -= 1
            if path not in self._data:
                return False
        return self.parse().tracks(path, is_folder=is_folder)

    def list_submodules(self) -> Mapping[bytes, SubmoduleEntry]:
        """Return the submodules by their paths."""
        return {} if self._is_whole and _MODE_OF_SUBMODULE not in self._data else self.parse().submodules

    def parse(self) -> GitIndex:
        """Return the index; an empty one when it cannot be read."""
        from riseml.files.project.index_parser import EMPTY_INDEX, BadIndex, parse_index

        if self._parsed is None:
            try:
                self._parsed = (
                    parse_index(self._data, self._hash_size, self._read_shared) if self._data else EMPTY_INDEX
                )
            except BadIndex as error:
                self._parsed = EMPTY_INDEX
                self.problem = str(error)
        return self._parsed
