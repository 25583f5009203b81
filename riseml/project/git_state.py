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
_DEADLINE = 2.0  # seconds after the files were sent
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_LINKS = 5  # from one ref to another


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
        text = _read_line(entry)
        if not text.startswith("gitdir: "):
            return None
        own = place / text.removeprefix("gitdir: ")
        common = _read_line(own / "commondir")
        return own, own / common if common else own
    return None


def read_revision(own: Path, shared: Path) -> str | None:
    """Return the commit of HEAD; None: there is none yet, or it cannot be read."""
    text = _read_line(own / "HEAD")
    for _ in range(_MOST_LINKS):
        if _COMMIT.fullmatch(text):
            return text
        name = text.removeprefix("ref: ")
        if name == text or not name.startswith("refs/") or ".." in name:
            return None
        text = _read_line(own / name) or _read_line(shared / name) or _find_packed(shared, name)
    return None


def _start_git(git: str, folder: Path, places: tuple[Path, Path, Path], revision: str) -> subprocess.Popen[bytes]:
    import subprocess

    own, shared, project = places
    (folder / "refs").mkdir()
    (folder / "objects").mkdir()
    (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    (folder / "HEAD").write_text(f"{revision}\n")
    (folder / "info").mkdir()
    (folder / "info" / "exclude").write_text(_read_text(shared / "info" / "exclude", _PACKED))
    work_tree = own.parent if own == shared else _find_work_tree(project)
    settings = {
        "GIT_DIR": str(folder),
        "GIT_WORK_TREE": str(work_tree),
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
    for line in _read_text(shared / "packed-refs", _PACKED).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _read_line(path: Path) -> str:
    return _read_text(path, _SHORT).partition("\n")[0].strip()


def _read_text(path: Path, most: int) -> str:
    """Return the beginning of a plain file; empty: there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return ""
        return file.read(most).decode("utf-8", "replace")
