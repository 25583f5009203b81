"""Folders that are removed whole, and new ones: whole under their name, or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.this_machine.removal import fill_new_folder, remove_tree
from tests.support.deep_folders import make_deep_folders


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


def test_the_folder_that_another_thread_filled_first_stays(tmp_path: Path) -> None:
    with fill_new_folder(tmp_path / "code") as fresh:
        (fresh / "a").write_text("second")
        with fill_new_folder(tmp_path / "code") as first:
            (first / "a").write_text("first")
    assert [path.name for path in tmp_path.iterdir()] == ["code"]
    assert (tmp_path / "code" / "a").read_text() == "first"


def test_a_folder_of_any_depth_is_removed_and_read_only_ones_too(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    folder = tmp_path / "job"
    folder.mkdir()
    make_deep_folders(folder, 1100, mode=0o500)
    (folder / "closed" / "inner").mkdir(parents=True)
    (folder / "link").symlink_to(outside)
    (folder / "closed" / "inner" / "link").symlink_to(outside)
    (folder / "closed").chmod(0)
    remove_tree(folder)
    remove_tree(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "kept").read_text() == "kept"
    assert outside.stat().st_mode & 0o777 == 0o755


def test_a_link_in_place_of_a_folder_is_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "job").symlink_to(tmp_path / "outside")
    remove_tree(tmp_path / "job")
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
