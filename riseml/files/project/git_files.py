"""The repository of a project, and its files, which are read with care: they may come with a project from elsewhere.

No link inside a repository is followed, every file has a limit, and a pipe or a device in the place of a file is none.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from riseml.base.records import dataclass
from riseml.files.project.git_config import find_last, parse_config

SHORT = 4096  # bytes of a file that has one line
LARGEST_CONFIG = 1 << 20  # bytes of a configuration that are read
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Repository:
    """The git repository that a folder is in."""

    top: Path  # the root of the work tree
    own: Path  # the folder of the work tree's own files: HEAD, index
    shared: Path  # the folder that all work trees of the repository share: config, info, refs, objects


def find_top(folder: Path) -> Path | None:
    """Return the nearest folder with a `.git`, from `folder` up; None: there is none."""
    folder = folder.absolute()
    return next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)


def find_repository(folder: Path) -> Repository | None:
    """Return the repository that a folder is in; None: there is none, or it belongs to another user."""
    top = find_top(folder)
    return None if top is None else open_repository(top)


def open_repository(top: Path) -> Repository | None:
    """Return the repository whose work tree has its root at `top`; None: there is none of this user."""
    entry = top / ".git"
    try:
        state = os.lstat(entry)
    except OSError:
        return None
    if state.st_uid != os.geteuid():
        return None
    if stat.S_ISDIR(state.st_mode):
        return Repository(top, entry, entry)
    return _open_linked_repository(top)


def _open_linked_repository(top: Path) -> Repository | None:
    """Return the repository that a file `.git` leads to: that of a worktree of git, or of a submodule.

    The file may come with a project from elsewhere, and name any folder of the user. So the folder must name the file,
    too, as git writes it: no project can bring that about outside of itself.
    """
    place = Path(os.path.realpath(top))
    text = read_line(place, ".git")
    if not text.startswith("gitdir: "):
        return None
    own = Path(os.path.realpath(place / text.removeprefix("gitdir: ")))
    back = read_line(own, "gitdir")
    if back:
        shared = own.parent.parent
        is_real = own.parent.name == "worktrees" and _leads_to(own, read_line(own, "commondir"), shared)
        return Repository(top, own, shared) if is_real and _leads_to(own, back, place / ".git") else None
    work_tree = find_last(parse_config(read_text(own, "config", LARGEST_CONFIG)), "core.worktree")
    return Repository(top, own, own) if work_tree and _leads_to(own, work_tree, place) else None


def _leads_to(folder: Path, text: str, target: Path) -> bool:
    """Return True when a path that is written in a folder is that of `target`."""
    return bool(text) and "\0" not in text and os.path.realpath(folder / text) == os.path.realpath(target)


def read_line(folder: Path, name: str) -> str:
    """Return the first line of a short file below a folder; empty: there is none."""
    line = read_text(folder, name, SHORT).partition("\n")[0].strip()
    return "" if "\0" in line else line  # not a path


def read_text(folder: Path, name: str, most: int) -> str:
    """Return the beginning of a plain file below a folder as text; empty: there is none."""
    return read_plain_file(folder, name, most).decode("utf-8", "replace")


def read_plain_file(folder: Path, name: str, most: int) -> bytes:
    """Return at most `most` bytes of a plain file below a folder; empty: there is none.

    No link is followed: a project from elsewhere may have one to a secret of the user, in place of any part of `.git`.
    """
    *above, last = name.split("/")
    try:
        at = os.open(folder, _FOLDER)
        for part in above:
            at = _open_inner(at, part)
        try:
            handle = os.open(last, _FILE, dir_fd=at)
        finally:
            os.close(at)
    except OSError:
        return b""
    with open(handle, "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""


def _open_inner(folder: int, name: str) -> int:
    """Open a folder in an open one, which is closed."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    finally:
        os.close(folder)
