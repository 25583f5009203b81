"""Settings of git that no test takes from the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.files.project.builders import fill_folder
from tests.unit.files.project.repositories import commit_all


@pytest.fixture(autouse=True)
def no_settings_of_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a repository with files that git tracks although rules ignore them, and with files that it ignores."""
    folder = tmp_path / "project"
    fill_folder(folder, "a.py", "x.train", "data/one.bin", "data/deep/two.bin", "docs/x.train", "out/kept.txt")
    (folder / ".gitignore").write_text("*.train\ndata/\nout\n.venv\n__pycache__\n")
    commit_all(folder)
    fill_folder(folder, "y.train", "data/new.bin", "data/deep/new.bin", "data/empty/x.train", ".venv/b.py", "new.py")
    return folder
