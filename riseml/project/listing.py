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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.archives.entries import ArchiveEntry, EntryKind
from riseml.errors import UsageError
from riseml.project.messages import MOST_NAMED, format_path, format_size, join_first

if TYPE_CHECKING:
    from riseml.project.ignore_rules import RuleFile

DEFAULT_LIMIT = 2**30  # bytes
LIMIT_VARIABLE = "RISEML_SYNC_LIMIT"

_SPECIAL = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "named pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


FileIdentity = tuple[int, int]
"""Device and inode number of a file."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What belongs to a project. The files are not read yet."""

    folder: Path
    entries: tuple[ArchiveEntry, ...]
    left_out: tuple[str, ...] = ()  # paths of files that the caller did not want

    @property
    def count(self) -> int:
        """Number of files and links."""
        return sum(entry.kind is not EntryKind.FOLDER for entry in self.entries)

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(entry.size for entry in self.entries)


def list_project_files(
    folder: Path, limit: int = DEFAULT_LIMIT, unwanted: frozenset[FileIdentity] = frozenset()
) -> Listing:
    """Return everything that belongs to the project, without reading a file.

    Args:
        folder: of the project.
        limit: bytes that the files may have together.
        unwanted: files that are left out, such as the one that the command prints to.

    Raises:
        UsageError: an entry cannot be sent, or the files have more than `limit` bytes.

    Example:
        list_project_files(Path("examples/ai-toaster")).size
    """
    entries = collect_entries(folder)
    left_out = tuple(entry.path for entry in entries if unwanted and _is_one_of(unwanted, folder, entry))
    entries = tuple(entry for entry in entries if entry.path not in left_out)
    _refuse_above_limit(entries, limit)
    return Listing(folder, entries, left_out)


def _is_one_of(files: frozenset[FileIdentity], folder: Path, entry: ArchiveEntry) -> bool:
    try:
        seen = os.lstat(folder / entry.path)
    except OSError:  # it was removed meanwhile; reading it reports that
        return False
    return (seen.st_dev, seen.st_ino) in files


def collect_entries(folder: Path) -> tuple[ArchiveEntry, ...]:
    """Return all entries of the project, sorted by the bytes of the path.

    Raises:
        UsageError: links that leave the project, special files, unreadable files; the message names them.
    """
    refused: list[str] = []
    entries = sorted(_walk_project(folder, refused), key=lambda entry: os.fsencode(entry.path))
    if refused:
        raise UsageError(
            f"the project cannot be synced: {join_first(refused)}",
            "remove what is named here, or add it to .risemlignore; a link must be relative and stay in the project",
        )
    return tuple(entries)


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


def _walk_project(folder: Path, refused: list[str]) -> Iterator[ArchiveEntry]:
    """Yield all entries in no order; add the description of each entry that cannot be sent to `refused`."""
    from riseml.project.ignore_rules import is_ignored, read_rules

    top, rules_above = _read_rules_above(folder)
    real = os.path.realpath(folder)
    todo = [("", rules_above)]
    while todo:
        at, above = todo.pop()
        try:
            with os.scandir(folder / at) as scanned:
                found = sorted(scanned, key=lambda one: one.name)
        except OSError as error:
            refused.append(f"{format_path(at or '.')} ({error.strerror})")
            continue
        if at and not found:
            yield ArchiveEntry(at, EntryKind.FOLDER)
        rules = (*above, *read_rules(os.fsencode(folder / at), _join_bytes(top, os.fsencode(at))))
        for one in found:
            path = f"{at}/{one.name}" if at else one.name
            is_folder = one.is_dir(follow_symlinks=False)
            if one.name == ".git" or is_ignored(rules, _join_bytes(top, os.fsencode(path)), is_folder=is_folder):
                continue
            if is_folder:
                todo.append((path, rules))
            elif (entry := _make_entry(real, folder, path, refused)) is not None:
                yield entry


def _make_entry(real: str, folder: Path, path: str, refused: list[str]) -> ArchiveEntry | None:
    try:
        seen = os.lstat(folder / path)
        mtime = max(0, int(seen.st_mtime))
        if stat.S_ISREG(seen.st_mode):
            if not os.access(folder / path, os.R_OK, effective_ids=True):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return ArchiveEntry(path, EntryKind.FILE, seen.st_size, mtime, bool(seen.st_mode & stat.S_IXUSR))
        if stat.S_ISLNK(seen.st_mode):
            target = os.readlink(folder / path)
            if not _leaves_project(real, folder, path, target):
                return ArchiveEntry(path, EntryKind.LINK, mtime=mtime, target=target)
            refused.append(f"{format_path(path)} (a link to {format_path(target)}, outside the project)")
        else:
            refused.append(f"{format_path(path)} (a {_SPECIAL.get(stat.S_IFMT(seen.st_mode), 'special file')})")
    except OSError as error:
        refused.append(f"{format_path(path)} ({error.strerror})")
    return None


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
            return b"", ()  # git ignores the whole project; only its own rules can say what belongs to it
    return inside, rules


def _join_bytes(top: bytes, path: bytes) -> bytes:
    return b"/".join(part for part in (top, path) if part)
