"""What git says about the files of a project: which it tracks, which it ignores beside `.gitignore`, which submodules
it knows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.records import dataclass
from riseml.files.project.git_files import Repository, find_repository, open_repository, read_plain_file
from riseml.files.project.git_index import LARGEST, LazyIndex
from riseml.files.project.git_settings import LARGEST_RULES, GitSettings, read_excludes_file, read_git_settings

if TYPE_CHECKING:
    from riseml.files.project.ignore_rules import RuleFile


@dataclass(frozen=True, slots=True)
class WorkTree:
    """The work tree of a repository, as far as it is in a project. Paths are those of the project, as bytes."""

    repository: Repository
    inside: bytes  # the project's path in the work tree; empty unless the project is a folder of it
    at: bytes  # the path of the work tree in the project; empty unless it is a folder of the project
    index: LazyIndex
    settings: GitSettings  # that hold in the repository

    def tracks(self, path: bytes, *, is_folder: bool) -> bool:
        """Return True when git tracks a file or a submodule, or something below a folder."""
        return self.index.exists and self.index.tracks(self.name(path), is_folder=is_folder)

    def name(self, path: bytes) -> bytes:
        """Return the path in the work tree."""
        if self.at:
            return path[len(self.at) + 1 :]
        return self.inside + b"/" + path if self.inside else path

    def has_submodule(self, path: bytes) -> bool:
        """Return True when git knows a folder as a submodule."""
        return self.index.exists and self.name(path) in self.index.list_submodules()

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
    return _read(repository, b"" if inside == "." else os.fsencode(inside), b"", settings), settings


def read_inner_work_tree(folder: Path, at: str, environ: Mapping[str, str]) -> WorkTree | None:
    """Return the work tree that a folder of a project is, such as a submodule; None: it is none of this user."""
    repository = open_repository(folder / at)
    if repository is None:
        return None
    return _read(repository, b"", os.fsencode(at), read_git_settings(environ, repository))


def _read(repository: Repository, inside: bytes, at: bytes, settings: GitSettings) -> WorkTree:
    data = read_plain_file(repository.own, "index", LARGEST + 1)
    index = LazyIndex(data, settings.hash_size, lambda name: read_plain_file(repository.own, name, LARGEST + 1))
    return WorkTree(repository, inside, at, index, settings)


def read_user_rules(settings: GitSettings, base: bytes = b"") -> tuple[RuleFile, ...]:
    """Return the rules of `core.excludesFile`; paths name the root of the work tree `base`.

    Raises:
        UsageError: the file cannot be read.
    """
    return _parse_file(read_excludes_file(settings), base)


def read_own_rules(tree: WorkTree, base: bytes) -> tuple[RuleFile, ...]:
    """Return the rules of `info/exclude` of a work tree; paths name its root `base`."""
    return _parse_file(read_plain_file(tree.repository.shared, "info/exclude", LARGEST_RULES), base)


def _parse_file(content: bytes, base: bytes) -> tuple[RuleFile, ...]:
    from riseml.files.project.ignore_rules import parse_rules

    rules = parse_rules(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), base)
    return () if rules is None else (rules,)
