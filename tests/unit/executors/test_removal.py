"""New folders: whole under their name, or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.removal import fill_new_folder


def test_a_new_folder_has_its_name_when_it_is_complete(tmp_path: Path) -> None:
    with fill_new_folder(tmp_path / "code") as fresh:
        (fresh / "a").write_text("a")
        assert not (tmp_path / "code").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["code"]
    assert (tmp_path / "code" / "a").read_text() == "a"


def test_a_new_folder_that_cannot_be_filled_leaves_nothing(tmp_path: Path) -> None:
    def fill(fresh: Path) -> None:
        (fresh / "folder").mkdir()
        (fresh / "folder" / "a").write_text("a")
        (fresh / "folder").chmod(0o555)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"), fill_new_folder(tmp_path / "code") as fresh:
        fill(fresh)
    assert list(tmp_path.iterdir()) == []
