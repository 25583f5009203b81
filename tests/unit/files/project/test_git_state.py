"""The revision of a project, and whether its files are those of the commit; nothing of the repository ever runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from riseml.files.project.git_state import ask_git

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
    assert all(one.folder == "" for one in question.questions), "they are removed"
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


def test_a_folder_that_is_not_a_repository_has_no_revision(tmp_path: Path) -> None:
    assert ask(tmp_path) is None
    (tmp_path / ".git").mkdir()
    assert ask(tmp_path) is None
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/../../secret\n")
    assert ask(tmp_path) is None
    os.mkfifo(tmp_path / ".git" / "index")
    (tmp_path / ".git" / "HEAD").write_text(f"{'a' * 40}\n")
    assert ask(tmp_path) == ("a" * 40, None), "the commit is not there"


SECRET = "5ec2e7" + "0" * 34  # a token of the user looks like a commit


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a folder of the user, in whose files a token stands wherever git has a commit."""
    folder = tmp_path / "home"
    (folder / "refs" / "heads").mkdir(parents=True)
    for name in ("token", "HEAD", "refs/heads/main"):
        (folder / name).write_text(f"{SECRET}\n")
    (folder / "packed-refs").write_text(f"{SECRET} refs/heads/packed\n")
    return folder


@pytest.mark.parametrize(
    ("link", "target", "head"),
    [
        ("HEAD", "token", None),
        ("refs", "refs", "ref: refs/heads/main"),
        ("refs/heads", "refs/heads", "ref: refs/heads/main"),
        ("refs/heads/main", "token", "ref: refs/heads/main"),
        ("packed-refs", "packed-refs", "ref: refs/heads/packed"),
    ],
)
def test_no_link_in_a_repository_gives_a_file_of_the_user_as_revision(
    tmp_path: Path, secret: Path, link: str, target: str, head: str | None
) -> None:
    own = tmp_path / "project" / ".git"
    (own / link).parent.mkdir(parents=True)
    (own / link).symlink_to(secret / target)
    if head is not None:
        (own / "HEAD").write_text(f"{head}\n")
    assert ask(tmp_path / "project") is None


def test_a_project_that_names_a_folder_which_does_not_name_it_has_no_revision(tmp_path: Path, secret: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for text in (f"gitdir: {secret}\n", "gitdir: fake/worktrees/x\n", f"gitdir: {secret}\0\n"):
        (project / ".git").write_text(text)
        fake = project / "fake" / "worktrees" / "x"
        fake.mkdir(parents=True, exist_ok=True)
        (fake / "HEAD").write_text("ref: refs/heads/main\n")
        (fake / "gitdir").write_text(f"{project}/.git\n")
        (fake / "commondir").write_text(f"{secret}\n")
        assert ask(project) is None
    (project / ".git").unlink()
    (secret / "file").write_text(f"gitdir: {secret}\n")
    (secret / "gitdir").write_text(f"{project}/.git\n")
    (project / ".git").symlink_to(secret / "file")
    assert ask(project) is None


def test_a_work_tree_that_was_moved_has_no_revision_and_one_behind_a_link_has_it(git: Git, tmp_path: Path) -> None:
    commit = git("rev-parse", "HEAD").strip()
    git("worktree", "add", "../other")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    assert ask(tmp_path / "link") == (commit, True)
    (tmp_path / "other").rename(tmp_path / "moved")
    assert ask(tmp_path / "moved") is None


def test_a_submodule_has_its_own_revision(git: Git, tmp_path: Path) -> None:
    commit = git("rev-parse", "HEAD").strip()
    git("-c", "protocol.file.allow=always", "submodule", "add", str(tmp_path / "project"), "part")
    git("commit", "-m", "two")
    assert git("rev-parse", "HEAD").strip() != commit
    assert ask(tmp_path / "project" / "part") == (commit, True)


def test_without_git_it_is_not_known_whether_the_project_is_clean(git: Git, tmp_path: Path) -> None:
    question = ask_git(tmp_path / "project", {"PATH": str(tmp_path)})
    assert question is not None
    assert question.read_answer() is None
