"""The files of a project are written below a folder: no link is followed, and nothing is replaced."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.project.unpacking import OpenFolder, unpack_entries

ENTRIES = (
    ArchiveEntry("a/b/run.sh", EntryKind.FILE, 3, 1000, executable=True),
    ArchiveEntry("a/data", EntryKind.FILE, 4, 2000),
    ArchiveEntry("empty", EntryKind.FOLDER, mtime=3000),
    ArchiveEntry("link", EntryKind.LINK, target="a/data"),
)


class Project:
    """A state of a project, whose files have their names as content."""

    def __init__(self, *entries: ArchiveEntry) -> None:
        self.entries = entries

    def read_files(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        for entry in self.entries:
            yield entry, iter([entry.path[:2].encode(), entry.path[2:].encode()])


def unpack(folder: Path, *entries: ArchiveEntry, paths: Collection[str] | None = None) -> None:
    folder.mkdir(exist_ok=True)
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    with ExitStack() as stack:
        stack.callback(os.close, root)
        unpack_entries(Project(*entries), OpenFolder(root, stack), paths)


def list_tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_files_folders_and_links_are_there_with_times_and_modes(tmp_path: Path) -> None:
    target = tmp_path / "target"
    unpack(target, *ENTRIES)
    assert list_tree(target) == ["a", "a/b", "a/b/run.sh", "a/data", "empty", "link"]
    states = {name: (target / name).stat() for name in ("a/b/run.sh", "a/data", "empty")}
    assert {name: (state.st_mtime, state.st_mode & 0o777) for name, state in states.items()} == {
        "a/b/run.sh": (1000, 0o755),
        "a/data": (2000, 0o644),
        "empty": (3000, 0o755),
    }
    assert (target / "link").readlink() == Path("a/data")
    assert (target / "a/b/run.sh").read_text() == "a/b/run.sh"


def test_only_paths_that_are_wanted_are_written(tmp_path: Path) -> None:
    unpack(tmp_path / "target", *ENTRIES, paths={"a/data", "link"})
    assert list_tree(tmp_path / "target") == ["a", "a/data", "link"]


def test_links_come_last_so_that_no_file_goes_through_one(tmp_path: Path) -> None:
    link = ArchiveEntry("out", EntryKind.LINK, target="a")
    with pytest.raises(UsageError):
        unpack(tmp_path / "target", link, ArchiveEntry("out/file", EntryKind.FILE))
    with pytest.raises(UsageError):
        unpack(tmp_path / "other", ArchiveEntry("out", EntryKind.LINK, target="../elsewhere"))
    assert list_tree(tmp_path / "other") == []


def test_no_link_that_is_there_already_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "a").symlink_to("../elsewhere")
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        unpack(tmp_path / "target", *ENTRIES)
    assert list_tree(tmp_path / "elsewhere") == []


def test_no_file_that_is_there_already_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target" / "a").mkdir(parents=True)
    (tmp_path / "target" / "a" / "data").write_text("mine")
    with pytest.raises(FileExistsError):
        unpack(tmp_path / "target", ENTRIES[1])
    assert (tmp_path / "target" / "a" / "data").read_text() == "mine"
