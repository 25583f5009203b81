"""What the user has told git about all repositories: rules of files that git ignores, and conditions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.files.project.builders import fill_folder
from tests.unit.files.project.repositories import commit_all, git, is_clean, list_files


def test_what_git_ignores_for_the_user_stays_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, folder = tmp_path / "home", tmp_path / "project"
    fill_folder(folder, "a.py", "token.txt", "b.key", "c.swp", "d.tmp", "sub/e.py", "sub/token.txt", "sub/b.key")
    commit_all(folder)
    git(folder, "rm", "-q", "--cached", "-r", ".")
    (folder / ".git" / "info" / "exclude").write_text("token.txt\n/sub/e.py\n")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    fill_folder(home, "xdg/git/ignore", ".gitconfig", "more", "mine", "theirs")
    (home / "xdg" / "git" / "ignore").write_text("*.key\n")
    (home / ".gitconfig").write_text("[user]\n")
    assert list_files(folder) == ["a.py", "c.swp", "d.tmp"], "git's default for core.excludesFile"
    assert list_files(folder / "sub") == [], "a project in a folder of the repository"
    (home / ".gitconfig").write_text("[include] path = more\n")
    (home / "more").write_text("[core]\n\texcludesFile = ~/mine # of all\n")
    (home / "mine").write_text("*.swp\n!token.txt\n")
    assert list_files(folder) == ["a.py", "b.key", "d.tmp", "sub/b.key"], "the repository's rules come after the user's"
    (home / ".gitconfig").write_text(f'[includeIf "gitdir:{tmp_path}/*/"]\n\tpath = "~/more"\n')
    assert list_files(folder) == ["a.py", "b.key", "d.tmp", "sub/b.key"]
    (home / ".gitconfig").write_text('[includeIf "gitdir:/elsewhere/"]\n\tpath = ~/more\n')
    assert "c.swp" in list_files(folder)
    git(folder, "config", "core.excludesFile", str(home / "theirs"))
    (home / "theirs").write_text("*.tmp\n")
    assert list_files(folder) == ["a.py", "b.key", "c.swp", "sub/b.key"]
    listed = git(folder, "ls-files", "-co", "--exclude-standard")
    assert list_files(folder) == sorted(listed.splitlines())
    git(folder, "worktree", "add", "-q", "-f", "../other")
    fill_folder(tmp_path / "other", "token.txt", "x.tmp")
    git(tmp_path / "other", "rm", "-q", "--cached", "-r", ".")
    assert list_files(tmp_path / "other") == ["a.py", "b.key", "c.swp", "sub/b.key"], "info/exclude is that of all"


def test_settings_that_git_includes_under_a_condition_count_when_it_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = tmp_path / "home", tmp_path / "Project"
    fill_folder(folder, "a.py", "b.key")
    git(folder, "init", "-q", "-b", "topic/one")
    git(folder, "remote", "add", "origin", "https://example.org/lab/x.git")
    fill_folder(home, ".gitconfig", "mine")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    monkeypatch.setenv("HOME", str(home))
    (home / "mine").write_text("*.key\n")
    (home / "more").write_text("[core]\n\texcludesFile = ~/mine\n")
    conditions = {
        f"gitdir:{tmp_path}/Project/": True,
        f"gitdir:{tmp_path}/project/": False,
        f"gitdir/i:{tmp_path}/project/": True,
        "gitdir:Project/": True,
        "gitdir:./../Project/": False,
        "onbranch:topic/": True,
        "onbranch:topic/*": True,
        "onbranch:*": False,
        "onbranch:one": False,
        "hasconfig:remote.*.url:https://example.org/lab/**": True,
        "hasconfig:remote.*.url:https://example.org/*": False,
        "hasconfig:remote.*.url:https://*/lab/?.git": True,
        "hasconfig:remote.*.pushurl:**": False,
        "unknown:x": False,
    }
    for condition, is_met in conditions.items():
        (home / ".gitconfig").write_text(f'[includeIf "{condition}"]\n\tpath = more\n')
        listed = git(folder, "ls-files", "-co", "--exclude-standard").split()
        assert (list_files(folder), condition) == (sorted(listed), condition)
        assert ("b.key" not in listed) is is_met, condition
    (home / ".gitconfig").write_text("")
    for index, (name, value) in enumerate({"Core.ExcludesFile": "~/mine"}.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{index}", name)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{index}", value)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    assert list_files(folder) == ["a.py"]
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "includeIf.onbranch:topic/One.path")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(home / "more"))
    assert list_files(folder) == ["a.py", "b.key"]
    git(folder, "branch", "-m", "topic/One")
    assert list_files(folder) == ["a.py"]


def test_a_clean_project_stays_clean_with_files_that_git_ignores_for_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    fill_folder(folder, "a.py")
    commit_all(folder)
    fill_folder(tmp_path, "home/git/ignore", "project/b.key")
    assert is_clean(folder) is False
    (tmp_path / "home" / "git" / "ignore").write_text("*.key\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    assert is_clean(folder) is True
    git(folder, "update-index", "--split-index")
    assert is_clean(folder) is True
    git(folder, "update-index", "--assume-unchanged", "a.py")
    (folder / "a.py").write_text("changed\n")
    assert is_clean(folder) is None, "git status says nothing of such a file"
