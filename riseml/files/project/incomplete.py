"""What git has not filled in a project: submodules that are not checked out, and pointers of Git LFS.

A job with such a project fails late, or computes with the wrong files, so a command names them with what fills them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.records import dataclass
from riseml.files.project.messages import MOST_NAMED, format_path, join_first
from riseml.files.project.work_tree import WorkTree

if TYPE_CHECKING:
    from riseml.files.project.ignore_rules import RuleFile

SMALLEST_POINTER = 125
LARGEST_POINTER = 1023
"""Bytes of the smallest and of the largest pointer of Git LFS."""

_LARGEST_PLAIN = 140  # bytes: two lines of a fixed length, and the size of the file in up to 15 digits
_POINTER = re.compile(
    rb"version https://[^\s]+\n(?:ext-[0-9]-[^\s]+ sha256:[0-9a-f]{64}\n)*oid sha256:[0-9a-f]{64}\nsize [0-9]+\n?"
)
_MOST_READ = 500  # files of one kind that are read: more would make the listing slow
_LARGEST_ATTRIBUTES = 1 << 20  # bytes of a `.gitattributes` that are read
_LFS_PATTERN = re.compile(rb'^[ \t]*("(?:[^"\\]|\\.)*"|[^\s#"]\S*)[ \t](?:.*[ \t])?filter=lfs(?=\s|$)', re.MULTILINE)


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
        self._long_files: list[str] = []
        self._attributes: list[str] = []  # folders with a `.gitattributes`

    def add_tree(self, tree: WorkTree | None) -> None:
        """Take a work tree of the project, with its submodules."""
        if tree is not None:
            self._trees.append(tree)

    def add_file(self, path: str, size: int) -> None:
        """Take a file that has the size of a pointer, in bytes."""
        (self._files if size <= _LARGEST_PLAIN else self._long_files).append(path)

    def add_attributes(self, folder: str) -> None:
        """Take a folder that has a `.gitattributes`."""
        self._attributes.append(folder)

    def find_all(self, leaves_out: Callable[[str], bool]) -> Iterator[Incomplete]:
        """Yield what is incomplete. `leaves_out`: returns True for a folder that `.risemlignore` excludes."""
        files = [*sorted(self._files)[:_MOST_READ], *self._list_long_files()[:_MOST_READ]]
        pointers = sorted(path for path in files if self._is_pointer(path))
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
            return False  # a file in its place, for example: that is not a submodule any more

    def _list_long_files(self) -> list[str]:
        """Return the files that Git LFS keeps, and whose size is that of a pointer with lines of extensions."""
        if not self._long_files:
            return []
        from riseml.files.project.ignore_rules import is_ignored

        tree = self._trees[0] if self._trees and not self._trees[0].at else None
        parts = os.fsdecode(tree.inside).split("/") if tree is not None and tree.inside else []
        prefix = "".join(f"{part}/" for part in parts)
        folders = {f"{prefix}{folder}".rstrip("/"): self._folder / folder for folder in self._attributes}
        if tree is not None:
            for depth in range(len(parts)):  # `..` of a project that is a link leads elsewhere
                folders["/".join(parts[:depth])] = tree.repository.top.joinpath(*parts[:depth])
        rule_files = list(_read_lfs_rules(folders))
        if not rule_files:
            return []
        names = {os.fsencode(prefix + path): path for path in sorted(self._long_files)}
        return [
            path
            for name, path in names.items()
            if any(name.startswith(above) and is_ignored(rules, name, is_folder=False) for above, rules in rule_files)
        ]

    def _is_pointer(self, path: str) -> bool:
        return _POINTER.fullmatch(_read(self._folder / path, LARGEST_POINTER + 1)) is not None


def _read_lfs_rules(folders: Mapping[str, Path]) -> Iterator[tuple[bytes, tuple[RuleFile, ...]]]:
    """Yield what the .gitattributes files of these folders give to Git LFS, each with the beginning of the paths in it.

    Args:
        folders: by their paths in the repository.
    """
    from riseml.files.project.ignore_rules import parse_rules

    for base, folder in folders.items():
        text = _read(folder / ".gitattributes", _LARGEST_ATTRIBUTES)
        patterns = [pattern.strip(b'"') for pattern in _LFS_PATTERN.findall(text)]
        if (rules := parse_rules(patterns, os.fsencode(base))) is not None:
            yield os.fsencode(f"{base}/" if base else ""), (rules,)


def _read(path: Path, most: int) -> bytes:
    """Return the beginning of a file; empty: it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            return file.read(most) or b""  # None: a pipe that has a writer, and nothing to read
    except OSError:
        return b""


def _describe_submodules(tree: WorkTree, paths: tuple[str, ...]) -> Incomplete:
    names = join_first([format_path(path) for path in paths])
    is_one = len(paths) == 1
    phrase, whose = ("is a submodule that is", "its") if is_one else ("are submodules that are", "their")
    words = [os.fsdecode(tree.name(os.fsencode(path))) if tree.at else path for path in paths]
    chosen = words if len(words) <= MOST_NAMED else []
    command = shlex.join([*_name_git(tree.at), "submodule", "update", "--init", *chosen])
    message = f"{names} {phrase} not checked out, so the jobs do not get {whose} files"
    return Incomplete(paths, message, f"check {'it' if is_one else 'them'} out with `{command}`")


def _describe_pointers(place: bytes, paths: tuple[str, ...]) -> Incomplete:
    names = join_first([format_path(path) for path in paths])
    phrase = "is a pointer" if len(paths) == 1 else "are pointers"
    command = shlex.join([*_name_git(place), "lfs", "pull"])
    return Incomplete(
        paths, f"{names} {phrase} of Git LFS, so the jobs do not get what is behind", f"fetch it with `{command}`"
    )


def _name_git(place: bytes) -> list[str]:
    return ["git", "-C", os.fsdecode(place)] if place else ["git"]
