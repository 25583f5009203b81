"""The files of a repository are read with care: one from elsewhere takes no time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.files.project.git_files import find_repository
from tests.unit.files.project.builders import fill_folder
from tests.unit.files.project.repositories import list_files


@pytest.mark.timeout(20)
def test_a_hostile_repository_takes_no_time(tmp_path: Path) -> None:
    spaces = " " * 3000
    for text in (
        f"worktree{spaces}=\n",
        f"[core]\nworktree ={spaces}x{spaces}\n",
        "[" * 2**20,
        '[a "' * 2**18,
        "\\\n" * 2**19,
    ):
        own = tmp_path / "elsewhere"
        own.mkdir(exist_ok=True)
        (own / "config").write_text(text)
        (tmp_path / ".git").write_text(f"gitdir: {own}\n")
        assert find_repository(tmp_path) is None
    (tmp_path / ".git").unlink()
    fill_folder(tmp_path, ".git/HEAD", "a.py")
    os.symlink("/dev/zero", tmp_path / ".git" / "index")
    (tmp_path / ".git" / "config").write_text("[core]\nexcludesFile = /dev/zero\n[include]\npath = config\n")
    assert "a.py" in list_files(tmp_path)
    with open(tmp_path / "rules", "wb") as file:
        file.truncate(2**21)
    (tmp_path / ".git" / "config").write_text("[core]\nexcludesFile = rules\n")
    with pytest.raises(UsageError, match="1 MiB"):
        list_files(tmp_path)
