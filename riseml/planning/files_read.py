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
from collections.abc import Iterable, Iterator, Mapping

from riseml.base.errors import UsageError

MOST_INCLUDING = 1_000
"""Requirement files of one environment that may be read for what they include."""

MOST_DEPTH = 50
"""Levels to which requirement files may include each other."""

MOST_TEXT = 2 * 2**20
"""Characters that may be read in all requirement files of one environment."""

MOST_COMPARED = 5_000_000
"""Comparisons of a pattern with the name of a file, for one environment."""

MOST_LINKS = 10_000
"""Links that may be followed for one environment."""

_TOKEN = re.compile(r"[^\s;&|<>()'\"`=,]+")
_PROGRAM = (".sh", ".bash", ".py", ".pl", ".mk")
_BUILD_FILES = frozenset({"Makefile", "makefile", "GNUmakefile", "setup.py"})
# No \s in the indent or before the name: it matches line breaks, and a text of line breaks takes quadratic time.
_INCLUDE = re.compile(r"^[ \t]*(?:-[rc][ \t=]*|--(?:requirement|constraint)[ \t=]+)([^\s=]\S*)", re.MULTILINE)
_FOLDER = re.compile(r"^[ \t]*(?:-[ef][ \t=]*|--(?:editable|find-links)[ \t=]+)([^\s=]\S*)", re.MULTILINE)
# As pip: a requirement is a path when it begins with a dot, has a slash or is an archive; `./mylib[gpu]; marker`.
_LOCAL = re.compile(r"^[ \t]*(\.[^\s;#\[]*|[\w.+-]+/[^\s;#\[]*|[\w.+-]+\.(?:whl|zip|tar\.gz))", re.MULTILINE)
_EXTRAS = re.compile(r"(?<=[^/])\[[^\[\]]*\]?$")  # `.[dev]`; a comma cuts `.[dev,test]` to `.[dev`
_SHORT = ("-r", "-c", "-e")  # options of pip whose value may follow without a space
_LINK = "link:"  # begins the value of a link in `files`; its target follows
_LONGEST_PATH = 4096  # characters; a system opens no longer one
_WHOLE = frozenset({".", "./", "/code", "/code/", "$PWD", "${PWD}"})
# Programs that read what the project says about itself, and build it. No \s: see above.
_BUILDER = re.compile(
    r"(?:^|[;&|(\n])[ \t]*(?:\w+=[^\s;&|(]*[ \t]+)*(?:python[0-9.]*[ \t]+-m[ \t]+)?"
    r"(?:make|poetry|pdm|pipenv|uv[ \t]+sync)\b"
)
_LINK_HINT = "name the files and folders themselves"
_HINT = "merge the requirement files that train.install reads into fewer"


def list_files_read(install: Iterable[str], files: Mapping[str, str], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files that the install steps may read, in order.

    Args:
        install: the steps.
        files: every file of the project; of the contents only the targets of links count.
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
        self._including = self._read = self._compared = self._links = 0

    def is_complete(self) -> bool:
        """Return True when every file of the project was found."""
        return len(self.found) == len(self._files)

    def add_step(self, step: str) -> None:
        """Add the files that a step may read; a step that runs a program of the project, or builds the project, may
        read all of them.
        """
        tokens = [name for token in _TOKEN.findall(step) for name in _list_meanings(token.removeprefix("@"))]
        if _BUILDER.search(step) or any(token in _WHOLE or self._is_program(token) for token in tokens):
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
        that the file includes, or where a link leads.
        """
        if len(path) > _LONGEST_PATH:
            return []
        if (link := self._find_link(path)) is not None:
            return self._follow_link(link, path, depth)
        if path in self._files:
            self.found.add(path)
            return self._find_includes(path, depth, path)
        if path == ".":
            self.found.update(self._files)
        elif any(char in path for char in "*?["):
            self._compared += len(self._ordered)
            if self._compared > MOST_COMPARED:
                raise UsageError("the install steps name too many patterns of files", "name a folder instead")
            return self._add_all(fnmatch.filter(self._ordered, path))
        else:
            first = bisect_left(self._ordered, f"{path}/")
            last = bisect_left(self._ordered, f"{path}0")
            return self._add_all(self._ordered[first:last])  # 0 is the character after /
        return []

    def _add_all(self, paths: list[str]) -> list[str]:
        """Add files; return the links among them, which lead to others."""
        self.found.update(paths)
        return [path for path in paths if self._files[path].startswith(_LINK)]

    def _find_link(self, path: str) -> str | None:
        """Return the first part of a path that is a link: itself or a folder above."""
        ends = [*(index for index, char in enumerate(path) if char == "/"), len(path)]
        return next((path[:end] for end in ends if self._files.get(path[:end], "").startswith(_LINK)), None)

    def _follow_link(self, link: str, path: str, depth: int) -> list[str]:
        """Add a link that is the path, or a folder above it. Return where the path leads, and what the file there
        includes: pip looks for that beside the link.
        """
        self.found.add(link)
        self._links += 1
        if self._links > MOST_LINKS:
            raise UsageError(f"the install steps lead over more than {MOST_LINKS:,} links: {link}", _LINK_HINT)
        if depth >= MOST_DEPTH:  # a link below itself leads to ever longer paths
            return []
        beside = posixpath.join(posixpath.dirname(link), self._files[link].removeprefix(_LINK))
        target = posixpath.normpath(beside + path[len(link) :])
        return [target, *self._find_includes(path, depth, target)]

    def _find_includes(self, path: str, depth: int, source: str) -> list[str]:
        """Return the paths that a file includes, which has the text of `source`."""
        text = self._texts.get(source, "")
        self._read += len(text)
        if self._read > MOST_TEXT:
            raise UsageError(f"the requirement files have more than {MOST_TEXT:,} characters: {path}", _HINT)
        folder = posixpath.dirname(path)
        # pip looks for local projects from the folder where it runs, which may be the one of the file.
        local = [_EXTRAS.sub("", name) for name in (*_FOLDER.findall(text), *_LOCAL.findall(text))]
        names = [*local, *(posixpath.join(folder, name) for name in (*_INCLUDE.findall(text), *local))]
        includes = [_to_path(name) for name in names]
        if not includes:
            return []
        self._including += 1
        if self._including > MOST_INCLUDING:
            raise UsageError(f"more than {MOST_INCLUDING:,} requirement files include others: {path}", _HINT)
        if depth >= MOST_DEPTH:
            raise UsageError(f"requirement files include each other more than {MOST_DEPTH} deep: {path}", _HINT)
        return includes


def _list_meanings(token: str) -> Iterator[str]:
    """Yield a word, and what it names when it is the value of a short option or has extras: `-e.[dev]` is `.`."""
    yield token
    values = [token, token[2:]] if token.startswith(_SHORT) else [token]
    yield from (value for value in values[1:] if value)
    yield from (bare for value in values if (bare := _EXTRAS.sub("", value)) not in ("", value))


def _to_path(token: str) -> str:
    return posixpath.normpath(token.removeprefix("/code/"))
