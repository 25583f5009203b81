"""Folders are removed in parts, at any depth, with few descriptors."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from riseml.job_programs.folder_listing import remove_tree
from riseml.job_programs.folder_paths import FileErrorKind
from riseml.job_programs.folder_removal import RemovalTally, remove_entry
from tests.support.deep_folders import make_deep_folders
from tests.unit.job_programs.folder_files import fails


def test_a_removal_comes_in_parts(root: int, folder: Path) -> None:
    for at in range(10):
        (folder / f"a/{at}").mkdir(parents=True)
        (folder / f"a/{at}/x").write_bytes(b"123")
    parts = [remove_tree(root, "a", 8)]
    while not parts[-1].done:
        parts.append(remove_tree(root, "a", 8))
    assert (sum(one.files for one in parts), sum(one.folders for one in parts)) == (10, 11)
    assert (len(parts), sum(one.size for one in parts), os.listdir(folder)) == (3, 30, [])
    for path, trouble in (("", FileErrorKind.BAD_PATH), ("none", FileErrorKind.MISSING)):
        with fails(trouble):
            remove_tree(root, path, 8)


def test_a_removal_goes_to_any_depth_in_parts_with_few_descriptors(root: int, folder: Path) -> None:
    (folder / "a").mkdir()
    make_deep_folders(folder / "a", 500)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(name) for name in os.listdir("/proc/self/fd")) + 80, hard))
    try:
        parts = [remove_tree(root, "a", 400)]
        while not parts[-1].done:
            parts.append(remove_tree(root, "a", 400))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (sum(one.files for one in parts), sum(one.folders for one in parts)) == (500, 501)
    assert os.listdir(folder) == []


def test_a_removal_leaves_what_is_read_only_to_its_owner(folder: Path) -> None:
    (folder / "a").mkdir(mode=0o500)
    opened = os.open(folder, os.O_RDONLY)
    tally = RemovalTally(0)
    assert not remove_entry(opened, b"a", tally)
    os.close(opened)
    assert (folder / "a").stat().st_mode & 0o777 == 0o500
