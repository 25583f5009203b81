"""What git has not filled in a project: submodules that are not checked out, and pointers of Git LFS.

A job with such a project fails late, or computes with the wrong files, so a command names them with what fills them.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from riseml.project.messages import MOST_NAMED, format_path, join_first
from riseml.project.work_tree import WorkTree
from riseml.records import dataclass

SMALLEST_POINTER, LARGEST_POINTER = 125, 140
"""Bytes of a pointer of Git LFS: two lines of a fixed length, and the size of the file in up to 15 digits."""

_BEGINNING, _NEXT = b"version https://", b"\noid sha256:"
_MOST_READ = 500  # files of such a size that are read: more would make the listing slow


@dataclass(frozen=True, slots=True)
class Incomplete:
    """Some parts of a project that git has not filled."""

    paths: tuple[str, ...]  # sorted
    message: str
    hint: str


class IncompleteFinder:
    """Collects what may be incomplete while a project is listed.

    Args:
        folder: of the project.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._trees: list[WorkTree] = []
        self._files: list[str] = []

    def add_tree(self, tree: WorkTree | None) -> None:
        """Take a work tree of the project, with its submodules."""
        if tree is not None:
            self._trees.append(tree)

    def add_file(self, path: str) -> None:
        """Take a file that has the size of a pointer."""
        self._files.append(path)

    def find_all(self, leaves_out: Callable[[str], bool]) -> Iterator[Incomplete]:
        """Yield what is incomplete. `leaves_out`: returns True for a folder that `.risemlignore` excludes."""
        pointers = [path for path in sorted(self._files)[:_MOST_READ] if self._is_pointer(path)]
        for tree in self._trees:
            submodules = (os.fsdecode(path) for path, _ in tree.list_submodules())
            if empty := tuple(path for path in submodules if self._is_empty(path) and not leaves_out(path)):
                yield _describe_submodules(tree, empty)
        for place in sorted({tree.at for tree in self._trees} | {b""}, reverse=True):
            prefix = os.fsdecode(place) + "/" if place else ""
            inside = tuple(path for path in pointers if path.startswith(prefix))
            pointers = [path for path in pointers if not path.startswith(prefix)]
            if inside:
                yield _describe_pointers(place, inside)

    def _is_empty(self, path: str) -> bool:
        """Return True when a folder is empty or missing."""
        try:
            with os.scandir(self._folder / path) as scanned:
                return next(scanned, None) is None
        except FileNotFoundError:
            return True
        except OSError:
            return False  # a file in its place, for example: that is no submodule any more

    def _is_pointer(self, path: str) -> bool:
        try:
            handle = os.open(self._folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        with open(handle, "rb") as file:
            beginning = file.read(LARGEST_POINTER)
        return beginning.startswith(_BEGINNING) and _NEXT in beginning


def _describe_submodules(tree: WorkTree, paths: tuple[str, ...]) -> Incomplete:
    names = join_first([format_path(path) for path in paths])
    is_one = len(paths) == 1
    what, whose = ("is a submodule that is", "its") if is_one else ("are submodules that are", "their")
    words = [os.fsdecode(tree.name(os.fsencode(path))) if tree.at else path for path in paths]
    chosen = words if len(words) <= MOST_NAMED else []
    command = shlex.join([*_name_git(tree.at), "submodule", "update", "--init", *chosen])
    message = f"{names} {what} not checked out, so the jobs do not get {whose} files"
    return Incomplete(paths, message, f"check {'it' if is_one else 'them'} out with `{command}`")


def _describe_pointers(place: bytes, paths: tuple[str, ...]) -> Incomplete:
    names = join_first([format_path(path) for path in paths])
    what = "is a pointer" if len(paths) == 1 else "are pointers"
    command = shlex.join([*_name_git(place), "lfs", "pull"])
    return Incomplete(
        paths, f"{names} {what} of Git LFS, so the jobs do not get what is behind", f"fetch it with `{command}`"
    )


def _name_git(place: bytes) -> list[str]:
    return ["git", "-C", os.fsdecode(place)] if place else ["git"]
