"""The list of environments, while builds and other threads remove files and folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.builds import make_environments


def test_a_folder_that_vanishes_while_environments_are_listed_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "file").write_bytes(b"12345")
    monkeypatch.setattr(Path, "glob", lambda *_: [tmp_path / "gone", tmp_path / "made"])
    monkeypatch.setattr(os, "walk", lambda folder: [(str(folder), [], ["temporary", "file"])])
    found = list(make_environments(tmp_path).list_environments("5e17e4", frozenset()))
    assert [(one.identity, one.size) for one in found] == [("made", 5)]
