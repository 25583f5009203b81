"""The revision of a project, and whether its files are those of the commit; nothing of the repository ever runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from riseml.project.git_state import ask_git

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Return git in a repository with one commit."""
    folder = tmp_path / "project"
    folder.mkdir()

    def run(*words: str) -> str:
        own = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
        return subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True).stdout

    run("init")
    (folder / "train.py").write_text("print(1)\n")
    run("add", ".")
    run("commit", "-m", "one")
    return run


def ask(folder: Path) -> tuple[str, bool | None] | None:
    question = ask_git(folder, os.environ)
    if question is None:
        return None
    clean = question.read_answer()
    assert question.folder == "", "it is removed"
    return question.revision, clean


def test_a_project_is_clean_until_a_file_changes_or_appears(git: Git, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    commit = git("rev-parse", "HEAD").strip()
    assert ask(folder) == (commit, True)
    (folder / "new.py").write_text("")
    assert ask(folder) == (commit, False)
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "exclude").write_text("new.py\n")
    assert ask(folder) == (commit, True)
    (folder / "train.py").write_text("print(2)\n")
    assert ask(folder) == (commit, False)
    git("checkout", "train.py")
    git("worktree", "add", "../other")
    git("pack-refs", "--all")
    assert ask(tmp_path / "other") == (commit, True)
    (folder / "below").mkdir()
    assert ask(folder / "below") == (commit, True)


def test_no_program_that_a_repository_names_runs(git: Git, tmp_path: Path) -> None:
    folder, mark = tmp_path / "project", tmp_path / "ran"
    for name in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "core.sshCommand", "diff.external"):
        git("config", name, f"touch {mark}; cat")
    hook = folder / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    (folder / ".gitattributes").write_text("* filter=evil\n")
    (folder / "train.py").write_text("print(2)\n")
    found = ask(folder)
    assert found is not None
    assert found[1] is False
    assert not mark.exists()


def test_what_is_no_repository_has_no_revision(tmp_path: Path) -> None:
    assert ask(tmp_path) is None
    (tmp_path / ".git").mkdir()
    assert ask(tmp_path) is None
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/../../secret\n")
    assert ask(tmp_path) is None
    os.mkfifo(tmp_path / ".git" / "index")
    (tmp_path / ".git" / "HEAD").write_text(f"{'a' * 40}\n")
    assert ask(tmp_path) == ("a" * 40, None), "the commit is not there"


def test_without_git_it_is_not_known_whether_the_project_is_clean(git: Git, tmp_path: Path) -> None:
    question = ask_git(tmp_path / "project", {"PATH": str(tmp_path)})
    assert question is not None
    assert question.read_answer() is None
