"""Which files of a project the install steps may read: the files that they name, and what these include.

The files may be a stranger's: the user may have cloned the project. So each name is looked up once, even when files
include each other in a circle, and the number of files, their depth and their text have bounds.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping

from riseml.errors import UsageError

MOST_INCLUDING = 1_000
"""Requirement files of one environment that may be read for what they include."""

MOST_DEPTH = 50
"""Levels to which requirement files may include each other."""

MOST_TEXT = 2 * 2**20
"""Characters that may be read in all requirement files of one environment."""

MOST_COMPARED = 5_000_000
"""Comparisons of a pattern with the name of a file, for one environment."""

_TOKEN = re.compile(r"[^\s;&|<>()'\"`=,]+")
_PROGRAM = (".sh", ".bash", ".py", ".pl", ".mk")
_BUILD_FILES = frozenset({"Makefile", "makefile", "GNUmakefile", "setup.py"})
# No \s in the indent or before the name: it matches line breaks, and a text of line breaks takes quadratic time.
_INCLUDE = re.compile(r"^[ \t]*(?:-r|--requirement|-c|--constraint|-e|--editable)[ \t=]+([^\s=]\S*)", re.MULTILINE)
_WHOLE = frozenset({".", "./", "/code", "/code/", "$PWD", "${PWD}"})
_MAKE = re.compile(r"(?:^|[;&|]\s*)make\b")
_HINT = "merge the requirement files that train.install reads into fewer"


def list_files_read(install: Iterable[str], files: Mapping[str, str], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files that the install steps may read, in order.

    Args:
        install: the steps.
        files: every file of the project; only the names count.
        texts: the content of the files that may include others.

    Raises:
        UsageError: the files include too many others, or too deep, or have too much text.
    """
    search = _Search(files, texts)
    for step in install:
        if search.is_complete():
            break
        search.add_step(step)
    return tuple(sorted(search.found))


class _Search:
    """Collects the files that the steps of one environment may read."""

    def __init__(self, files: Mapping[str, str], texts: Mapping[str, str]) -> None:
        self.found: set[str] = set()
        self._files = files
        self._texts = texts
        self._ordered = sorted(files)
        self._named: set[str] = set()  # every path that was looked up
        self._including = self._read = self._compared = 0

    def is_complete(self) -> bool:
        """Return True when every file of the project was found."""
        return len(self.found) == len(self._files)

    def add_step(self, step: str) -> None:
        """Add the files that a step may read; a step that runs a program of the project may read all of them."""
        tokens = [token.removeprefix("@") for token in _TOKEN.findall(step)]
        if _MAKE.search(step) or any(token in _WHOLE or self._is_program(token) for token in tokens):
            self.found.update(self._files)
            return
        waiting = deque((path, 0) for path in map(_to_path, tokens))
        while waiting:
            path, depth = waiting.popleft()
            if path not in self._named:
                self._named.add(path)
                waiting.extend((inner, depth + 1) for inner in self._add_named(path, depth))

    def _is_program(self, token: str) -> bool:
        path = _to_path(token)
        return path in self._files and (
            token.startswith("./") or path.endswith(_PROGRAM) or posixpath.basename(path) in _BUILD_FILES
        )

    def _add_named(self, path: str, depth: int) -> list[str]:
        """Add what a path names: a file, all files of a folder, or all files that a pattern matches. Return the paths
        that the file includes.
        """
        if path in self._files:
            self.found.add(path)
            return self._find_includes(path, depth)
        if path == ".":
            self.found.update(self._files)
        elif any(char in path for char in "*?["):
            self._compared += len(self._ordered)
            if self._compared > MOST_COMPARED:
                raise UsageError("the install steps name too many patterns of files", "name a folder instead")
            self.found.update(fnmatch.filter(self._ordered, path))
        else:
            first, last = bisect_left(self._ordered, f"{path}/"), bisect_left(self._ordered, f"{path}0")
            self.found.update(self._ordered[first:last])  # 0 is the character after /
        return []

    def _find_includes(self, path: str, depth: int) -> list[str]:
        text = self._texts.get(path, "")
        self._read += len(text)
        if self._read > MOST_TEXT:
            raise UsageError(f"the requirement files have more than {MOST_TEXT:,} characters: {path}", _HINT)
        folder = posixpath.dirname(path)
        includes = [posixpath.normpath(posixpath.join(folder, name)) for name in _INCLUDE.findall(text)]
        if not includes:
            return []
        self._including += 1
        if self._including > MOST_INCLUDING:
            raise UsageError(f"more than {MOST_INCLUDING:,} requirement files include others: {path}", _HINT)
        if depth >= MOST_DEPTH:
            raise UsageError(f"requirement files include each other more than {MOST_DEPTH} deep: {path}", _HINT)
        return includes


def _to_path(token: str) -> str:
    return posixpath.normpath(token.removeprefix("/code/"))
