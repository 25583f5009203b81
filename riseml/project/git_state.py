"""The git revision of a project, found without running anything that the repository names.

The configuration of a repository may name programs: hooks, filters, a file system monitor. So git gets a repository of
its own, made for this question: an empty folder with the commit, which borrows objects and index of the project's
repository and nothing else. The question has a deadline; without an answer it is not known whether the files changed.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.records import dataclass

if TYPE_CHECKING:
    import subprocess

_SHORT = 4096  # bytes of a file that has one line
_PACKED = 1 << 24  # bytes of packed-refs that are read
_DEADLINE = 2.0  # seconds to wait after the files were sent
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_LINKS = 5  # from one ref to another
_WORK_TREE = re.compile(r'^[ \t]*worktree[ \t]*=[ \t]*"?([^"\n\0]*?)"?[ \t]*$', re.MULTILINE)  # of a submodule
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class GitQuestion:
    """A running git process that finds out whether the project is clean."""

    revision: str
    folder: str = ""  # the temporary repository of the question
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)  # None: git cannot be asked

    def read_answer(self) -> bool | None:
        """Return True when the project is clean, None when that is not known. Wait for git until its deadline at most.

        A project is clean when its files are those of the commit, and git ignores all others.
        """
        from subprocess import TimeoutExpired

        clean: bool | None = None
        if self.process is not None:
            try:
                output, _ = self.process.communicate(timeout=_DEADLINE)
                clean = not output if self.process.returncode == 0 else None
            except TimeoutExpired:
                clean = None
        self.close()
        return clean

    def close(self) -> None:
        """End git, and remove its temporary repository."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = ""


def ask_git(project: Path, environ: Mapping[str, str]) -> GitQuestion | None:
    """Begin to find the revision of a project; None: it is in no git repository of this user, or has no commit.

    Args:
        project: its folder.
        environ: of the command: git is found in its PATH.
    """
    found = find_repository(project)
    revision = None if found is None else read_revision(*found)
    if found is None or revision is None:
        return None
    git = shutil.which("git", path=environ.get("PATH"))
    own, shared = found
    if git is None or not (own / "index").is_file():
        return GitQuestion(revision)
    folder = tempfile.mkdtemp(prefix="riseml-git-")
    try:
        return GitQuestion(revision, folder, _start_git(git, Path(folder), (own, shared, project), revision))
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return GitQuestion(revision)


def find_repository(project: Path) -> tuple[Path, Path] | None:
    """Return the folders of the repository that a project is in: of its work tree, and what its work trees share."""
    for place in (project.absolute(), *project.absolute().parents):
        entry = place / ".git"
        try:
            found = os.lstat(entry)
        except OSError:
            continue
        if found.st_uid != os.geteuid():
            return None
        if stat.S_ISDIR(found.st_mode):
            return entry, entry
        return _find_linked_repository(entry)
    return None


def _find_linked_repository(entry: Path) -> tuple[Path, Path] | None:
    """Return the folders that a file `.git` leads to: those of a worktree of git, or of a submodule.

    The file may come with a project from elsewhere, and name any folder of the user. So the folder must name the file,
    too, as git writes it: no project can bring that about outside of itself.
    """
    place = Path(os.path.realpath(entry.parent))
    text = _read_line(place, ".git")
    if not text.startswith("gitdir: "):
        return None
    own = Path(os.path.realpath(place / text.removeprefix("gitdir: ")))
    back = _read_line(own, "gitdir")
    if back:
        shared = own.parent.parent
        is_real = own.parent.name == "worktrees" and _leads_to(own, _read_line(own, "commondir"), shared)
        return (own, shared) if is_real and _leads_to(own, back, place / ".git") else None
    found = _WORK_TREE.search(_read_text(own, "config", _PACKED))
    return (own, own) if found is not None and _leads_to(own, found[1], place) else None


def _leads_to(folder: Path, text: str, target: Path) -> bool:
    """Return True when a path that is written in a folder is that of `target`."""
    return bool(text) and os.path.realpath(folder / text) == os.path.realpath(target)


def read_revision(own: Path, shared: Path) -> str | None:
    """Return the commit of HEAD; None: there is none yet, or it cannot be read."""
    text = _read_line(own, "HEAD")
    for _ in range(_MOST_LINKS):
        if _COMMIT.fullmatch(text):
            return text
        name = text.removeprefix("ref: ")
        if name == text or not name.startswith("refs/") or ".." in name:
            return None
        text = _read_line(own, name) or _read_line(shared, name) or _find_packed(shared, name)
    return None


def _start_git(git: str, folder: Path, places: tuple[Path, Path, Path], revision: str) -> subprocess.Popen[bytes]:
    import subprocess

    own, shared, project = places
    (folder / "refs").mkdir()
    (folder / "objects").mkdir()
    (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    (folder / "HEAD").write_text(f"{revision}\n")
    (folder / "info").mkdir()
    (folder / "info" / "exclude").write_text(_read_text(shared, "info/exclude", _PACKED))
    settings = {
        "GIT_DIR": str(folder),
        "GIT_WORK_TREE": str(_find_work_tree(project)),
        "GIT_OBJECT_DIRECTORY": str(shared / "objects"),
        "GIT_INDEX_FILE": str(own / "index"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        "PATH": os.path.dirname(git),
        "HOME": str(folder),
    }
    command = [git, "status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=all", "--", "."]
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=project, env=settings, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing)


def _find_work_tree(project: Path) -> Path:
    return next(place for place in (project.absolute(), *project.absolute().parents) if os.path.lexists(place / ".git"))


def _find_packed(shared: Path, name: str) -> str:
    for line in _read_text(shared, "packed-refs", _PACKED).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _read_line(folder: Path, name: str) -> str:
    line = _read_text(folder, name, _SHORT).partition("\n")[0].strip()
    return "" if "\0" in line else line  # not a path


def _read_text(folder: Path, name: str, most: int) -> str:
    """Return the beginning of a plain file below a folder; empty: there is none.

    No link is followed: a project from elsewhere may have one to a secret of the user, in place of any part of `.git`.
    """
    *above, last = name.split("/")
    try:
        at = os.open(folder, _FOLDER)
        for part in above:
            at = _open_inner(at, part)
        try:
            handle = os.open(last, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        finally:
            os.close(at)
    except OSError:
        return ""
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return ""
        return file.read(most).decode("utf-8", "replace")


def _open_inner(folder: int, name: str) -> int:
    """Open a folder in an open one, which is closed."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    finally:
        os.close(folder)
