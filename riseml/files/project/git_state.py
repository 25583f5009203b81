"""The git revision of a project, found without running anything that the repository names.

The configuration of a repository may name programs: hooks, filters, a file system monitor. So git gets a repository of
its own, made for this question: an empty folder with the commit, which borrows objects and index of the project's
repository and nothing else. The question has a deadline; without an answer it is not known whether the files changed.

A submodule that is checked out is asked in the same way, by a question of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.records import dataclass
from riseml.files.project.git_files import Repository, read_line, read_plain_file, read_text
from riseml.files.project.git_settings import LARGEST_RULES, read_excludes_file
from riseml.files.project.work_tree import WorkTree, read_inner_work_tree, read_work_tree

if TYPE_CHECKING:
    import subprocess

_PACKED = 1 << 24  # bytes of packed-refs that are read
_DEADLINE = 2.0  # seconds to wait after the files were sent
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_LINKS = 5  # from one ref to another
_MOST_SUBMODULES = 16  # that are asked; with more, it is not known whether the project is clean


@dataclass(slots=True)
class _Question:
    """A running git process that finds out whether one work tree is clean."""

    folder: str = ""  # the temporary repository of the question
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)  # None: git cannot be asked

    def read_answer(self, deadline: float) -> bool | None:
        """Return True when the work tree is clean, None when that is not known. `deadline`: on the monotonic clock."""
        from subprocess import TimeoutExpired

        if self.process is None:
            return None
        try:
            output, _ = self.process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except TimeoutExpired:
            return None
        return not output if self.process.returncode == 0 else None

    def close(self) -> None:
        """End git, and remove its temporary repository."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = ""


@dataclass(slots=True)
class GitQuestion:
    """The running git processes that find out whether the project and its submodules are clean."""

    revision: str
    ready_answers: list[bool | None] = field(default_factory=list, repr=False)  # answers that need no git
    trees: list[WorkTree] = field(default_factory=list, repr=False)
    questions: list[_Question] = field(default_factory=list, repr=False)

    def read_answer(self) -> bool | None:
        """Return True when the project is clean, None when that is not known. Wait for git until its deadline at most.

        A project is clean when its files are those of the commit, and git ignores all others.
        """
        deadline = time.monotonic() + _DEADLINE
        if any(tree.has_unwatched() for tree in self.trees):
            self.ready_answers.append(None)
        answers = [*self.ready_answers, *(question.read_answer(deadline) for question in self.questions)]
        self.close()
        return False if False in answers else None if None in answers else True

    def close(self) -> None:
        """End git, and remove its temporary repositories."""
        for question in self.questions:
            question.close()


def ask_git(project: Path, environ: Mapping[str, str], own_folders: Collection[str] = ()) -> GitQuestion | None:
    """Begin to find the revision of a project; None: it is in no git repository of this user, or has no commit.

    Args:
        project: its folder.
        environ: of the command: git is found in its PATH.
        own_folders: paths of riseml's own folders in the project, which do not count.
    """
    tree, _ = read_work_tree(project, environ)
    revision = None if tree is None else read_revision(tree.repository)
    if tree is None or revision is None:
        return None
    git = shutil.which("git", path=environ.get("PATH"))
    question = GitQuestion(revision)
    _Asking(git, project, environ, question).add_tree(tree, own_folders)
    return question


class _Asking:
    """Starts git for a work tree and its submodules.

    Args:
        git: the program; None: there is none.
        project: its folder.
        environ: of the command.
        question: gets what is known, and the processes.
    """

    def __init__(self, git: str | None, project: Path, environ: Mapping[str, str], question: GitQuestion) -> None:
        self._git = git
        self._project = project
        self._environ = environ
        self._question = question

    def add_tree(self, tree: WorkTree, own_folders: Collection[str] = ()) -> None:
        """Ask for a work tree and the submodules below it."""
        ready_answers = self._question.ready_answers
        self._question.trees.append(tree)
        self._question.questions.append(self._start_question(tree, own_folders))
        for path, commit in tree.list_submodules():
            inner = read_inner_work_tree(self._project, os.fsdecode(path), self._environ)
            if inner is None:
                ready_answers.append(_is_no_folder(self._project, path))
            elif len(self._question.questions) >= _MOST_SUBMODULES:
                ready_answers.append(None)
            else:
                ready_answers.append(read_revision(inner.repository) == commit)
                self.add_tree(inner)

    def _start_question(self, tree: WorkTree, own_folders: Collection[str]) -> _Question:
        if self._git is None or not tree.index.exists:
            return _Question()
        import tempfile

        folder = tempfile.mkdtemp(prefix="riseml-git-")
        try:
            return _Question(folder, _start_git(self._git, Path(folder), tree, own_folders))
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            return _Question()


def _is_no_folder(project: Path, path: bytes) -> bool | None:
    """Return False for a submodule that is empty or gone, None for one that another program has filled."""
    try:
        return None if os.listdir(project / os.fsdecode(path)) else False
    except OSError:
        return False


def read_revision(repository: Repository) -> str | None:
    """Return the commit of HEAD; None: there is none yet, or it cannot be read."""
    own = repository.own
    shared = repository.shared
    text = read_line(own, "HEAD")
    for _ in range(_MOST_LINKS):
        if _COMMIT.fullmatch(text):
            return text
        name = text.removeprefix("ref: ")
        if name == text or not name.startswith("refs/") or ".." in name:
            return None
        text = read_line(own, name) or read_line(shared, name) or _find_packed(shared, name)
    return None


def _find_packed(shared: Path, name: str) -> str:
    for line in read_text(shared, "packed-refs", _PACKED).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _start_git(git: str, folder: Path, tree: WorkTree, own_folders: Collection[str]) -> subprocess.Popen[bytes]:
    import subprocess

    repository = tree.repository
    _make_repository(folder, tree)
    variables = {
        "GIT_DIR": str(folder),
        "GIT_WORK_TREE": str(repository.top),
        "GIT_OBJECT_DIRECTORY": str(repository.shared / "objects"),
        "GIT_INDEX_FILE": str(repository.own / "index"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        "PATH": os.path.dirname(git),
        "HOME": str(folder),
    }
    inside = os.fsdecode(tree.inside)
    excluded = [f":(top,exclude,literal){os.path.join(inside, path)}" for path in own_folders]
    command = [git, "status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=all"]
    nothing = subprocess.DEVNULL
    return subprocess.Popen(
        [*command, "--", ".", *excluded],
        cwd=repository.top / inside,
        env=variables,
        stdin=nothing,
        stdout=subprocess.PIPE,
        stderr=nothing,
    )


def _make_repository(folder: Path, tree: WorkTree) -> None:
    """Make the repository of a question, which names no program.

    Raises:
        OSError: it cannot be made.
    """
    repository = tree.repository
    settings = tree.settings
    for name in ("refs", "objects", "info"):
        (folder / name).mkdir()
    version, extensions = (1, "[extensions]\n\tobjectFormat = sha256\n") if settings.hash_size == 32 else (0, "")
    (folder / "config").write_text(f"[core]\n\trepositoryformatversion = {version}\n\tbare = false\n{extensions}")
    (folder / "HEAD").write_text(f"{read_revision(repository)}\n")
    rules = read_plain_file(repository.shared, "info/exclude", LARGEST_RULES)
    (folder / "info" / "exclude").write_bytes(read_excludes_file(settings) + b"\n" + rules)
    for path in _find_shared_indexes(repository):
        (folder / path.name).symlink_to(path)


def _find_shared_indexes(repository: Repository) -> Iterator[Path]:
    """Yield the files of which one belongs to a split index."""
    return repository.own.glob("sharedindex.*")
