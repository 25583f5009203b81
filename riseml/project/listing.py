"""List the files that belong to a project, without reading them.

A project consists of what git would track: `.git` does not belong to it, nor does what `.gitignore` and
`.risemlignore` exclude (read in this order, in every folder; the deeper and the later rule wins). Rules of the folders
above the project count too, up to the root of the git repository. Empty folders belong to the project, because a
program may write there.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.archives.entries import ArchiveEntry, EntryKind, sort_by_path
from riseml.errors import UsageError
from riseml.project.file_index import FileIndex, read_state
from riseml.project.messages import MOST_NAMED, format_path, format_size, join_first
from riseml.records import dataclass

if TYPE_CHECKING:
    from riseml.project.ignore_rules import RuleFile

DEFAULT_LIMIT = 2**30  # bytes
LIMIT_VARIABLE = "RISEML_SYNC_LIMIT"

IGNORE_FILE_NAMES = frozenset({".gitignore", ".risemlignore"})
# as module constants, because each file reads them
_READABLE, _EXECUTABLE, _FILE = stat.S_IRUSR, stat.S_IXUSR, EntryKind.FILE
_SPECIAL = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "named pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


FileIdentity = tuple[int, int]
"""Device and inode number of a file."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What belongs to a project. The files are not read yet."""

    folder: Path
    entries: tuple[ArchiveEntry, ...]
    left_out: tuple[str, ...] = ()  # paths of files that the caller left out

    @property
    def count(self) -> int:
        """Number of files and links."""
        return sum(entry.kind is not EntryKind.FOLDER for entry in self.entries)

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(entry.size for entry in self.entries)


def list_project_files(
    folder: Path,
    limit: int = DEFAULT_LIMIT,
    unwanted: frozenset[FileIdentity] = frozenset(),
    index: FileIndex | None = None,
) -> Listing:
    """Return everything that belongs to the project, without reading a file.

    Args:
        folder: of the project.
        limit: bytes that the files may have together.
        unwanted: files that are left out, such as the file that the command prints to.
        index: knows the contents of files that have not changed; None: no content is known.

    Raises:
        UsageError: an entry cannot be sent, or the files have more than `limit` bytes.

    Example:
        list_project_files(Path("examples/ai-toaster")).size
    """
    walk = _Walk(folder, index or FileIndex(folder), unwanted)
    entries = walk.collect()
    _refuse_above_limit(entries, limit)
    return Listing(folder, entries, tuple(sorted(walk.left_out)))


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


class _Walk:
    """One walk through a project."""

    def __init__(self, folder: Path, index: FileIndex, unwanted: frozenset[FileIdentity]) -> None:
        self._folder = folder
        self._real = os.path.realpath(folder)
        self._index = index
        self._unwanted = unwanted
        self._user = os.geteuid()
        self._refused: list[str] = []  # descriptions of what cannot be sent
        self.left_out: list[str] = []  # paths of files that are left out

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

    def _visit_folders(self) -> Iterator[ArchiveEntry]:
        """Yield all entries in no order."""
        from riseml.project.ignore_rules import is_ignored, read_rules

        top, rules_above = _read_rules_above(self._folder)
        todo = [("", rules_above)]
        while todo:
            at, above = todo.pop()
            try:
                with os.scandir(self._folder / at) as scanned:
                    found = sorted(scanned, key=lambda one: one.name)
            except OSError as error:
                if at and isinstance(error, FileNotFoundError):
                    continue  # another program has removed it since its name was read
                self._refused.append(f"{format_path(at or '.')} ({error.strerror})")
                continue
            if at and not found:
                yield ArchiveEntry(at, EntryKind.FOLDER)
            names = {one.name for one in found}
            own = _join_bytes(top, os.fsencode(at))
            rules = above
            if not names.isdisjoint(IGNORE_FILE_NAMES):
                rules = (*above, *read_rules(os.fsencode(self._folder / at), own))
            for one in found:
                name = one.name
                path = f"{at}/{name}" if at else name
                is_folder = one.is_dir(follow_symlinks=False)
                if name == ".git" or (
                    rules and is_ignored(rules, _join_bytes(top, os.fsencode(path)), is_folder=is_folder)
                ):
                    continue
                if is_folder:
                    todo.append((path, rules))
                elif (entry := self._make_entry(one, path)) is not None:
                    yield entry

    def _make_entry(self, one: os.DirEntry[str], path: str) -> ArchiveEntry | None:
        try:
            seen = one.stat(follow_symlinks=False)
            if stat.S_ISREG(seen.st_mode):
                return self._make_file(seen, path)
            if stat.S_ISLNK(seen.st_mode):
                target = os.readlink(one.path)
                if not _leaves_project(self._real, self._folder, path, target):
                    return ArchiveEntry(path, EntryKind.LINK, mtime=_read_mtime(seen), target=target)
                self._refused.append(f"{format_path(path)} (a link to {format_path(target)}, outside the project)")
            else:
                kind = _SPECIAL.get(stat.S_IFMT(seen.st_mode), "special file")
                self._refused.append(f"{format_path(path)} (a {kind})")
        except FileNotFoundError:
            return None  # another program has removed it since its name was read
        except OSError as error:
            self._refused.append(f"{format_path(path)} ({error.strerror})")
        return None

    def _make_file(self, seen: os.stat_result, path: str) -> ArchiveEntry | None:
        if self._unwanted and (seen.st_dev, seen.st_ino) in self._unwanted:
            self.left_out.append(path)
            return None
        mode = seen.st_mode
        # The mode alone shows that this user may read the file: that saves a system call for nearly all files.
        if not (seen.st_uid == self._user and mode & _READABLE) and not os.access(
            self._folder / path, os.R_OK, effective_ids=True
        ):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        content = self._index.find_content(path, read_state(seen))
        is_executable = mode & _EXECUTABLE != 0
        return ArchiveEntry(path, _FILE, seen.st_size, _read_mtime(seen), is_executable, "", content)


def _read_mtime(seen: os.stat_result) -> int:
    return max(0, seen.st_mtime_ns // 1_000_000_000)


def _leaves_project(real: str, folder: Path, path: str, target: str) -> bool:
    """Return True when a link points outside, by its text or through other links."""
    text = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if os.path.isabs(target) or text == ".." or text.startswith("../"):
        return True
    end = os.path.realpath(folder / path)
    return end != real and not end.startswith(real.rstrip("/") + "/")


def _read_rules_above(folder: Path) -> tuple[bytes, tuple[RuleFile, ...]]:
    """Return the project's path inside its git repository, and the rules of the folders above the project."""
    from riseml.project.ignore_rules import is_ignored, read_rules

    folder = folder.absolute()
    top = next((place for place in (folder, *folder.parents) if os.path.exists(place / ".git")), folder)
    inside = os.fsencode(folder.relative_to(top)) if folder != top else b""
    rules: tuple[RuleFile, ...] = ()
    parts = inside.split(b"/") if inside else []
    for depth in range(len(parts)):
        base = b"/".join(parts[:depth])
        rules = (*rules, *read_rules(os.path.join(os.fsencode(top), base), base))
        if is_ignored(rules, b"/".join(parts[: depth + 1]), is_folder=True):
            return b"", ()  # git ignores the whole project; so only the rules inside the project count
    return inside, rules


def _join_bytes(top: bytes, path: bytes) -> bytes:
    return b"/".join(part for part in (top, path) if part)
