"""List the files that belong to a project, without reading them.

A project consists of what git would carry: `.git` does not belong to it, nor does what git's `core.excludesFile`, its
`info/exclude`, `.gitignore` and `.risemlignore` exclude (read in this order, the latter two in every folder; the deeper
and the later rule wins). Rules of the folders above the project count too, up to the root of the git repository. A file
that git tracks belongs to the project although a rule of git excludes it; `.risemlignore` excludes it all the same.
Empty folders belong to the project, because a program may write there. Sockets, pipes and devices do not, nor do the
folders of riseml itself, such as a RISEML_HOME inside the project.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.files.archives.entries import ArchiveEntry, EntryKind, sort_by_path
from riseml.files.project.file_index import FileIndex, read_state
from riseml.files.project.folder import RESERVED_NAME
from riseml.files.project.git_files import find_top
from riseml.files.project.incomplete import LARGEST_POINTER, SMALLEST_POINTER, Incomplete, IncompleteFinder
from riseml.files.project.messages import MOST_NAMED, format_path, format_size, join_first
from riseml.files.project.work_tree import (
    WorkTree,
    read_inner_work_tree,
    read_own_rules,
    read_user_rules,
    read_work_tree,
)

if TYPE_CHECKING:
    from riseml.files.project.ignore_rules import RuleFile

DEFAULT_LIMIT = 2**30  # bytes
LIMIT_VARIABLE = "RISEML_SYNC_LIMIT"

_NAMES_WITH_RULES = frozenset({".gitignore", ".risemlignore", ".git", ".gitattributes"})
# as module constants, because each file reads them
_READABLE = stat.S_IRUSR
_EXECUTABLE = stat.S_IXUSR
_FILE = EntryKind.FILE
_SPECIAL = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "named pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


FileIdentity = tuple[int, int]
"""Device and inode number of a file."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What belongs to a project. The files are not read yet."""

    folder: Path
    entries: tuple[ArchiveEntry, ...]
    left_out: tuple[str, ...] = ()  # sentences: what git, or a user, would not expect in the jobs
    own_folders: tuple[str, ...] = ()  # paths of riseml's own folders in the project, which are left out
    incomplete: tuple[Incomplete, ...] = ()  # what git has not filled

    @property
    def count(self) -> int:
        """Number of files and links."""
        return sum(entry.kind is not EntryKind.FOLDER for entry in self.entries)

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(entry.size for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is around a project on this machine."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)  # the variables of the command
    riseml_folders: tuple[tuple[str, Path], ...] = ()  # riseml's own folders: the variable that names each, its path
    outputs: frozenset[FileIdentity] = frozenset()  # files that the command prints to


def list_project_files(
    folder: Path, limit: int = DEFAULT_LIMIT, index: FileIndex | None = None, around: Surroundings | None = None
) -> Listing:
    """Return everything that belongs to the project, without reading a file, except what may be a pointer of Git LFS.

    Args:
        folder: of the project.
        limit: bytes that the files may have together.
        index: knows the contents of files that have not changed; None: no content is known.
        around: what is around the project; None: nothing of riseml.

    Raises:
        UsageError: an entry cannot be sent, or the files have more than `limit` bytes.

    Example:
        list_project_files(Path("examples/ai-toaster")).size
    """
    around = around or Surroundings()
    walk = _Walk(folder, index or FileIndex(folder), around)
    entries = walk.collect()
    _refuse_above_limit(entries, limit)
    return Listing(folder, entries, tuple(walk.describe_left_out()), walk.own_folders, walk.find_incomplete())


def find_own_folders(folder: Path, around: Surroundings) -> Iterator[tuple[str, str]]:
    """Yield the path in a project of each folder of riseml that is inside, and the name of its variable."""
    project = os.path.realpath(folder)
    for variable, own in around.riseml_folders:
        place = os.path.realpath(own)
        if place.startswith(project.rstrip("/") + "/"):
            yield os.path.relpath(place, project), variable


def check_reserved_name(folder: Path, around: Surroundings) -> None:
    """Refuse a project with an entry that has the name of riseml's own folder in a job, and would be sent.

    Raises:
        ReservedName: it has one.
    """
    try:
        list_project_files(folder, around=around)
    except ReservedName:
        raise
    except UsageError:
        return  # `train` names these problems


class ReservedName(UsageError):
    """A project has an entry with the name of the folder that riseml makes in a job's working directory."""


def _refuse_above_limit(entries: tuple[ArchiveEntry, ...], limit: int) -> None:
    size = sum(entry.size for entry in entries)
    if size <= limit:
        return
    largest = sorted(entries, key=lambda entry: -entry.size)[:MOST_NAMED]
    names = ", ".join(f"{format_path(entry.path)} ({format_size(entry.size)})" for entry in largest)
    raise UsageError(
        f"the project has {format_size(size)}, more than the limit of {format_size(limit)}; nothing was sent. "
        f"The largest files: {names}",
        f"list what the jobs do not need in .risemlignore, move data to the data folder, or raise {LIMIT_VARIABLE}",
    )


_Stop = tuple[str, "tuple[RuleFile, ...]", "WorkTree | None", bool]
"""A folder on the way of a walk: its path in the project, the rules of the folders above, the work tree that it is in,
and True where a rule of git excludes the folder, and git tracks something in it."""


class _Walk:
    """One walk through a project."""

    def __init__(self, folder: Path, index: FileIndex, around: Surroundings) -> None:
        self._folder = folder
        self._real = os.path.realpath(folder)
        self._index = index
        self._outputs = around.outputs
        self._environ = around.environ
        self._user = os.geteuid()
        self._refused: list[str] = []  # descriptions of what cannot be sent
        self._specials: list[str] = []  # descriptions of sockets, pipes and devices
        self._printed: list[str] = []  # paths of files that the command prints to
        self._riseml_folders = dict(find_own_folders(folder, around))
        self._met_folders: list[str] = []  # paths of those that are in the project
        self._incomplete = IncompleteFinder(folder)
        self._tree: WorkTree | None = None  # that the project is in
        self._top = b""  # the project's path in its repository, for rules

    def collect(self) -> tuple[ArchiveEntry, ...]:
        """Return all entries, sorted by the bytes of the path.

        Raises:
            UsageError: some cannot be sent; the message names them.
        """
        entries = sort_by_path(self._visit_folders())
        if self._refused:
            raise UsageError(
                f"the project cannot be synced: {join_first(self._refused)}",
                "remove what is named here, or add it to .risemlignore; a link must be relative and stay in the"
                " project",
            )
        return tuple(entries)

    @property
    def own_folders(self) -> tuple[str, ...]:
        """The paths of riseml's own folders in the project."""
        return tuple(self._met_folders)

    def describe_left_out(self) -> Iterator[str]:
        """Yield a sentence for each kind of entry that is left out without a rule."""
        for path in sorted(self._printed):
            yield f"{format_path(path)} is this command's own output, and is not sent"
        for path in self._met_folders:
            yield f"{format_path(path)} is riseml's own folder ({self._riseml_folders[path]}), and is not sent"
        if self._tree is not None and self._tree.index.problem:
            yield "git's index cannot be read: files that git tracks although a rule excludes them are not sent"
        if self._specials:
            yield f"not sent, because git has only files and links: {join_first(sorted(self._specials))}"

    def find_incomplete(self) -> tuple[Incomplete, ...]:
        """Return what git has not filled: submodules and pointers of Git LFS."""
        return tuple(self._incomplete.find_all(self._leaves_out))

    def _visit_folders(self) -> list[ArchiveEntry]:
        """Return all entries in no order."""
        tree, settings = read_work_tree(self._folder, self._environ)
        self._top, rules_above = _read_rules_above(self._folder, tree, read_user_rules(settings))
        self._incomplete.add_tree(tree)
        self._tree = tree
        entries: list[ArchiveEntry] = []
        todo: list[_Stop] = [("", rules_above, tree, False)]
        while todo:
            at, above, tree, only_tracked = todo.pop()
            dir_entries = self._scan_folder(at)
            if dir_entries is None:
                continue
            if at and not dir_entries and not only_tracked:
                entries.append(ArchiveEntry(at, EntryKind.FOLDER))
            rules, own_tree = self._read_rules(at, above, tree, dir_entries)
            is_submodule = own_tree is not tree and tree is not None and tree.has_submodule(os.fsencode(at))
            self._visit_entries(dir_entries, (at, rules, own_tree, only_tracked and not is_submodule), entries, todo)
        return entries

    def _visit_entries(
        self, dir_entries: list[os.DirEntry[str]], stop: _Stop, entries: list[ArchiveEntry], todo: list[_Stop]
    ) -> None:
        """Add the files and links of a folder to `entries`, and its folders to `todo`."""
        from riseml.files.project.ignore_rules import is_ignored

        at, rules, tree, only_tracked = stop
        top = self._top
        above = f"{at}/" if at else ""
        make_entry = self._make_entry
        for dir_entry in dir_entries:
            name = dir_entry.name
            path = above + name
            is_folder = dir_entry.is_dir(follow_symlinks=False)
            is_excluded = only_tracked
            if name == ".git":
                continue
            if only_tracked or (rules and is_ignored(rules, _join_bytes(top, os.fsencode(path)), is_folder=is_folder)):
                if not self._is_tracked(tree, rules, path, is_folder=is_folder):
                    continue
                is_excluded = True
            if is_folder and path in self._riseml_folders:
                self._met_folders.append(path)
            elif not at and name == RESERVED_NAME:
                _refuse_reserved(dir_entry)
            elif is_folder:
                todo.append((path, rules, tree, is_excluded))
            elif (entry := make_entry(dir_entry, path)) is not None:
                entries.append(entry)

    def _scan_folder(self, at: str) -> list[os.DirEntry[str]] | None:
        """Return the entries of a folder by name; None: it cannot be read, or is gone."""
        try:
            with os.scandir(self._folder / at) as scanned:
                return sorted(scanned, key=lambda dir_entry: dir_entry.name)
        except OSError as error:
            if not (at and isinstance(error, FileNotFoundError)):  # else: removed since its name was read
                self._refused.append(f"{format_path(at or '.')} ({error.strerror})")
        return None

    def _read_rules(
        self, at: str, above: tuple[RuleFile, ...], tree: WorkTree | None, dir_entries: Iterable[os.DirEntry[str]]
    ) -> tuple[tuple[RuleFile, ...], WorkTree | None]:
        """Return the rules in a folder, and the work tree that it belongs to."""
        from riseml.files.project.ignore_rules import read_rules

        names = {dir_entry.name for dir_entry in dir_entries}
        if names.isdisjoint(_NAMES_WITH_RULES):
            return above, tree
        if ".gitattributes" in names:
            self._incomplete.add_attributes(at)
        own = _join_bytes(self._top, os.fsencode(at))
        rules = above
        if at and ".git" in names and (inner := read_inner_work_tree(self._folder, at, self._environ)) is not None:
            if tree is not None and tree.has_submodule(os.fsencode(at)):  # git reads no rules above a submodule
                rules = (*(file for file in above if file.is_riseml), *read_user_rules(inner.settings, own))
            tree = inner
            rules = (*rules, *read_own_rules(inner, own))
            self._incomplete.add_tree(inner)
        return (*rules, *read_rules(os.fsencode(self._folder / at), own)), tree

    def _is_tracked(self, tree: WorkTree | None, rules: tuple[RuleFile, ...], path: str, *, is_folder: bool) -> bool:
        """Return True for what git tracks although a rule of git excludes it, unless `.risemlignore` excludes it."""
        from riseml.files.project.ignore_rules import is_ignored

        name = os.fsencode(path)
        if tree is None or not tree.tracks(name, is_folder=is_folder):
            return False
        own_rules = tuple(file for file in rules if file.is_riseml)
        return not is_ignored(own_rules, _join_bytes(self._top, name), is_folder=is_folder)

    def _leaves_out(self, path: str) -> bool:
        """Return True when `.risemlignore` excludes a folder that need not exist, or a folder above it."""
        from riseml.files.project.ignore_rules import is_ignored, read_rules

        rules: tuple[RuleFile, ...] = ()
        parts = path.split("/")
        for depth in range(len(parts)):
            above = "/".join(parts[:depth])
            rule_files = read_rules(os.fsencode(self._folder / above), _join_bytes(self._top, os.fsencode(above)))
            rules = (*rules, *(file for file in rule_files if file.is_riseml))
            folder_path = _join_bytes(self._top, os.fsencode("/".join(parts[: depth + 1])))
            if is_ignored(rules, folder_path, is_folder=True):
                return True
        return False

    def _make_entry(self, dir_entry: os.DirEntry[str], path: str) -> ArchiveEntry | None:
        try:
            status = dir_entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                return self._make_file(status, path)
            if stat.S_ISLNK(status.st_mode):
                target = os.readlink(dir_entry.path)
                if not _leaves_project(self._real, self._folder, path, target):
                    return ArchiveEntry(path, EntryKind.LINK, mtime=_read_mtime(status), target=target)
                self._refused.append(f"{format_path(path)} (a link to {format_path(target)}, outside the project)")
            else:
                kind = _SPECIAL.get(stat.S_IFMT(status.st_mode), "special file")
                self._specials.append(f"{format_path(path)} (a {kind})")
        except FileNotFoundError:
            return None  # another program has removed it since its name was read
        except OSError as error:
            self._refused.append(f"{format_path(path)} ({error.strerror})")
        return None

    def _make_file(self, status: os.stat_result, path: str) -> ArchiveEntry | None:
        if self._outputs and (status.st_dev, status.st_ino) in self._outputs:
            self._printed.append(path)
            return None
        mode = status.st_mode
        # The mode alone shows that this user may read the file: that saves a system call for nearly all files.
        if not (status.st_uid == self._user and mode & _READABLE) and not os.access(
            self._folder / path, os.R_OK, effective_ids=True
        ):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if SMALLEST_POINTER <= status.st_size <= LARGEST_POINTER:
            self._incomplete.add_file(path, status.st_size)
        content = self._index.find_content(path, read_state(status))
        is_executable = mode & _EXECUTABLE != 0
        return ArchiveEntry(path, _FILE, status.st_size, _read_mtime(status), is_executable, "", content)


def _read_mtime(status: os.stat_result) -> int:
    return max(0, status.st_mtime_ns // 1_000_000_000)


def _leaves_project(real: str, folder: Path, path: str, target: str) -> bool:
    """Return True when a link points outside, by its text or through other links."""
    text = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if os.path.isabs(target) or text == ".." or text.startswith("../"):
        return True
    end = os.path.realpath(folder / path)
    return end != real and not end.startswith(real.rstrip("/") + "/")


def _read_rules_above(
    folder: Path, tree: WorkTree | None, of_user: tuple[RuleFile, ...]
) -> tuple[bytes, tuple[RuleFile, ...]]:
    """Return the project's path inside its git repository, and the rules that hold there: those of the user, of the
    repository, and of the folders above the project."""
    from riseml.files.project.ignore_rules import is_ignored, read_rules

    folder = folder.absolute()
    top = find_top(folder) or folder
    inside = os.fsencode(folder.relative_to(top)) if folder != top else b""
    rules = of_user if tree is None else (*of_user, *read_own_rules(tree, b""))
    parts = inside.split(b"/") if inside else []
    for depth in range(len(parts)):
        base = b"/".join(parts[:depth])
        rules = (*rules, *read_rules(os.path.join(os.fsencode(top), base), base))
        if is_ignored(rules, b"/".join(parts[: depth + 1]), is_folder=True):
            return b"", of_user  # git ignores the whole project; so only the rules inside the project count
    return inside, rules


def _refuse_reserved(entry: os.DirEntry[str]) -> None:
    kind = "link" if entry.is_symlink() else "folder" if entry.is_dir() else "file"
    raise ReservedName(
        f"the project has a {kind} named {RESERVED_NAME}: that is the name of riseml's own folder in the working"
        " directory of a job",
        f"rename it, or name it in .risemlignore if the jobs do not need it: `echo /{RESERVED_NAME} >> .risemlignore`",
    )


def _join_bytes(top: bytes, path: bytes) -> bytes:
    return b"/".join(part for part in (top, path) if part)
