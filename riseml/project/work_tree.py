"""What git says about the files of a project: which it tracks, which it ignores beside `.gitignore`, which submodules
it knows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.project.git_files import Repository, find_repository, open_repository, read_plain_file
from riseml.project.git_index import LARGEST, LazyIndex
from riseml.project.git_settings import LARGEST_RULES, GitSettings, read_excludes_file, read_git_settings
from riseml.records import dataclass

if TYPE_CHECKING:
    from riseml.project.ignore_rules import RuleFile


@dataclass(frozen=True, slots=True)
class WorkTree:
    """The work tree of a repository, as far as it is in a project. Paths are those of the project, as bytes."""

    repository: Repository
    inside: bytes  # the project's path in the work tree; empty unless the project is a folder of it
    at: bytes  # the path of the work tree in the project; empty unless it is a folder of the project
    index: LazyIndex

    def tracks(self, path: bytes) -> bool:
        """Return True when git tracks a file, or something below a folder."""
        return self.index.exists and self.index.tracks(self.name(path))

    def name(self, path: bytes) -> bytes:
        """Return the path in the work tree."""
        if self.at:
            return path[len(self.at) + 1 :]
        return self.inside + b"/" + path if self.inside else path

    def list_submodules(self) -> Iterator[tuple[bytes, str]]:
        """Yield the submodules in the project that git checks out, each with its commit in hex."""
        prefix = self.inside + b"/" if self.inside else b""
        for name, entry in sorted(self.index.list_submodules().items()):
            if name.startswith(prefix) and not entry.is_skipped:
                yield (self.at + b"/" + name if self.at else name[len(prefix) :]), entry.commit

    def has_unwatched(self) -> bool:
        """Return True when `git status` says nothing of changes in a file of the project that is there."""
        prefix = self.inside + b"/" if self.inside else b""
        top = os.fsencode(self.repository.top)
        return any(
            name.startswith(prefix) and os.path.lexists(os.path.join(top, name))
            for name in self.index.parse().unwatched
        )


def read_work_tree(folder: Path, environ: Mapping[str, str]) -> tuple[WorkTree | None, GitSettings]:
    """Return the work tree that a project is in, and the user's settings of git; None: it is in none of this user."""
    repository = find_repository(folder)
    settings = read_git_settings(environ, repository)
    if repository is None:
        return None, settings
    inside = os.path.relpath(folder.absolute(), repository.top)
    return _read(repository, b"" if inside == "." else os.fsencode(inside), b"", settings.hash_size), settings


def read_inner_work_tree(folder: Path, at: str) -> WorkTree | None:
    """Return the work tree that a folder of a project is, such as a submodule; None: it is none of this user."""
    repository = open_repository(folder / at)
    if repository is None:
        return None
    return _read(repository, b"", os.fsencode(at), read_git_settings({}, repository).hash_size)


def _read(repository: Repository, inside: bytes, at: bytes, hash_size: int) -> WorkTree:
    data = read_plain_file(repository.own, "index", LARGEST + 1)
    index = LazyIndex(data, hash_size, lambda name: read_plain_file(repository.own, name, LARGEST + 1))
    return WorkTree(repository, inside, at, index)


def read_git_rules(tree: WorkTree | None, settings: GitSettings) -> tuple[RuleFile, ...]:
    """Return the rules that git has beside `.gitignore`: `core.excludesFile`, then `info/exclude` of the repository.

    Raises:
        UsageError: `core.excludesFile` cannot be read.
    """
    from riseml.project.ignore_rules import parse_rules

    found = [parse_rules(split_rules(read_excludes_file(settings)))]
    if tree is not None:
        found.append(parse_rules(split_rules(_read_excludes(tree.repository))))
    return tuple(rules for rules in found if rules is not None)


def read_inner_rules(tree: WorkTree, base: bytes) -> tuple[RuleFile, ...]:
    """Return the rules of `info/exclude` of a work tree inside a project; paths name its folder `base`."""
    from riseml.project.ignore_rules import parse_rules

    rules = parse_rules(split_rules(_read_excludes(tree.repository)), base)
    return () if rules is None else (rules,)


def split_rules(content: bytes) -> list[bytes]:
    """Return the lines of a file with rules."""
    return content.removeprefix(b"\xef\xbb\xbf").split(b"\n")


def _read_excludes(repository: Repository) -> bytes:
    return read_plain_file(repository.shared, "info/exclude", LARGEST_RULES)
