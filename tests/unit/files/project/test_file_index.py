"""The index: unchanged files are not read, and nothing is believed that could be wrong."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from riseml.files.archives.entries import ArchiveEntry
from riseml.files.project import archive
from riseml.files.project.archive import Snapshot, take_snapshot
from riseml.files.project.file_index import FileIndex
from riseml.files.project.listing import list_project_files
from tests.unit.files.project.builders import fill_folder

LONG_AGO = 5_000_000_000  # ns


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose files changed long before they are read."""
    folder = tmp_path / "project"
    fill_folder(folder, "a.py", "b.py", "sub/c.py")
    (folder / "f\u00fcr J\udcfcrgen").write_bytes(b"text")
    now = time.time_ns() + LONG_AGO
    monkeypatch.setattr("time.time_ns", lambda: now)
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the files that are read, without the few that are read to check the index."""
    found: list[str] = []
    original = archive._hash_content

    def hash_content(folder: Path, entry: ArchiveEntry, index: FileIndex) -> str:
        found.append(entry.path)
        return original(folder, entry, index)

    monkeypatch.setattr(archive, "_hash_content", hash_content)
    return found


def sync(project: Path) -> Snapshot:
    index = FileIndex(project, project.parent / "cache" / "index")
    snapshot = take_snapshot(list_project_files(project, index=index), index)
    index.save()
    return snapshot


def test_unchanged_files_are_not_read(project: Path, reads: list[str]) -> None:
    first = sync(project)
    assert len(reads) == 4
    assert sync(project) == first
    assert len(reads) == 4
    (project / "a.py").write_text("changed")
    changed = sync(project)
    assert reads[4:] == ["a.py"]
    assert changed.digest == take_snapshot(list_project_files(project)).digest != first.digest
    (project / "b.py").rename(project / "d.py")
    (project / "sub/c.py").chmod(0o755)
    assert sync(project).digest == take_snapshot(list_project_files(project)).digest


def test_an_edit_in_the_same_tick_is_noticed(project: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A file changes after it was read, and its size and all of its times stay: only reading it again shows that."""
    monkeypatch.undo()
    (project / "a.py").write_text("old")
    before = sync(project)
    seen = (project / "a.py").stat()
    handle = os.open(project / "a.py", os.O_WRONLY)
    os.pwrite(handle, b"new", 0)
    os.utime(handle, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    os.close(handle)
    assert sync(project).digest == take_snapshot(list_project_files(project)).digest != before.digest


def test_files_that_changed_a_moment_ago_are_not_entered(tmp_path: Path, reads: list[str]) -> None:
    fill_folder(tmp_path / "project", "a.py")
    sync(tmp_path / "project")
    sync(tmp_path / "project")
    assert reads == ["a.py"] * 2


def test_an_index_that_is_wrong_is_noticed(project: Path, reads: list[str]) -> None:
    """An attacker has entered other contents for all of the files."""
    right = sync(project)
    index = FileIndex(project, project.parent / "cache" / "index")
    listing = list_project_files(project, index=index)
    index._used_entries = {path: (state, bytes(32)) for path, (state, _) in index._used_entries.items()}
    index._is_new = True
    index.save()
    assert all(entry.content for entry in listing.entries)
    assert sync(project) == right
    assert sync(project) == right
    assert len(reads) == 8


@pytest.mark.parametrize("harm", ["cut off", "a bit", "another project", "empty", "a link", "others may write"])
def test_an_index_that_cannot_be_trusted_is_not_used(project: Path, reads: list[str], harm: str) -> None:
    right = sync(project)
    path = project.parent / "cache" / "index"
    data = bytearray(path.read_bytes())
    match harm:
        case "cut off":
            path.write_bytes(data[:-5])
        case "a bit":
            data[-20] ^= 1
            path.write_bytes(data)
        case "another project":
            other = FileIndex(project.parent, path)
            other.forget_contents()
            other.save()
        case "empty":
            path.write_bytes(b"")
        case "a link":
            path.rename(path.with_name("moved"))
            path.symlink_to("moved")
        case "others may write":
            path.chmod(0o666)
    assert sync(project) == right
    assert len(reads) == 8


def test_a_folder_that_cannot_be_written_makes_no_error(project: Path) -> None:
    (project.parent / "cache").write_text("a file")
    assert sync(project) == sync(project)


def test_few_indexes_are_kept(project: Path) -> None:
    for number in range(70):
        index = FileIndex(project, project.parent / "cache" / str(number))
        take_snapshot(list_project_files(project, index=index), index)
        index.save()
    assert len(list((project.parent / "cache").iterdir())) == 64
    assert (project.parent / "cache" / "69").exists()


def test_many_files_are_read_side_by_side(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_folder(project, *(f"many/{number}" for number in range(300)))
    one = take_snapshot(list_project_files(project))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert take_snapshot(list_project_files(project)) == one
