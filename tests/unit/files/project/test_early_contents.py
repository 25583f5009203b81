"""Contents that a client sends before their list: each file is read once, and nothing of it is trusted."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.errors import UsageError
from riseml.files.archives.manifest import write_manifest
from riseml.files.archives.pieces import RECORD
from riseml.files.project import early_contents, handed_packs
from riseml.files.project.archive import take_snapshot
from riseml.files.project.early_contents import EarlyContents
from riseml.files.project.file_index import FileIndex
from riseml.files.project.listing import Listing, list_project_files
from riseml.store.projects.snapshots import SnapshotStore
from tests.unit.files.project.builders import drop_privileges
from tests.unit.files.project.early_packs import FILES, count_bytes, send_early, sync, write_files
from tests.unit.store.test_states import NAMES, read_tree, unpack


def test_what_was_sent_early_is_not_missing(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    project = write_files(tmp_path / "project", FILES)
    digest, missing = sync(snapshots, project)
    assert (digest, missing) == (take_snapshot(list_project_files(project)).digest, [])
    assert read_tree(unpack(snapshots, digest, tmp_path / "code")) == read_tree(project)


@settings(max_examples=50)
@given(
    st.dictionaries(NAMES, st.binary(max_size=300), max_size=8),
    st.integers(1, 400),
    st.integers(1, 400),
    st.integers(1, 300),
)
def test_any_folder_arrives_as_it_is(files: dict[bytes, bytes], part: int, pack: int, largest: int) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as name:
        patch.setattr(early_contents, "_PART", part)
        patch.setattr(handed_packs, "_PACK", pack)
        patch.setattr(early_contents, "_LARGEST", largest)
        project, snapshots = Path(name) / "project", SnapshotStore(Path(name) / "snapshots")
        for path, content in files.items():
            place = project / os.fsdecode(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        project.mkdir(exist_ok=True)
        digest, missing = sync(snapshots, project)
        large = {content for content in files.values() if len(content) > largest}
        assert digest == take_snapshot(list_project_files(project)).digest
        assert len(missing) == len(large)


def test_a_file_that_changed_since_it_was_listed_stays_unread(tmp_path: Path) -> None:
    project = write_files(tmp_path / "project", FILES)
    listing = list_project_files(project)
    (project / "a").write_text("longer")
    (project / "b" / "c").unlink()
    early = EarlyContents(listing, FileIndex(project))
    assert b"".join(early.pack()) == b"".join(
        (RECORD.pack(0), RECORD.pack(3), b"one", RECORD.pack(5), b"three")  # d, e and run.sh
    )
    assert {one.path for one in early.name_entries().entries if one.content} == {"d", "e", "run.sh"}


def test_files_with_one_content_are_packed_once(tmp_path: Path) -> None:
    project = write_files(tmp_path / "project", dict.fromkeys("abc", "same"))
    early = EarlyContents(list_project_files(project), FileIndex(project))
    assert b"".join(early.pack()) == RECORD.pack(4) + b"same"
    assert len({one.content for one in early.name_entries().entries}) == 1


def test_a_file_that_changes_after_it_was_sent_is_missing_at_the_end(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    project = write_files(tmp_path / "project", FILES)
    send_early(snapshots, EarlyContents(list_project_files(project), FileIndex(project)))
    (project / "a").write_text("changed")
    snapshot = take_snapshot(list_project_files(project))
    missing = snapshots.receive_manifest(snapshot.digest, write_manifest(snapshot.entries))
    assert missing == [one.content for one in snapshot.entries if one.path == "a"]
    assert not snapshots.has_snapshot(snapshot.digest)


def test_what_is_there_already_takes_no_space(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    project = write_files(tmp_path / "project", FILES)
    sync(snapshots, project)
    before = count_bytes(tmp_path / "snapshots")
    assert sync(snapshots, project)[1] == []
    assert count_bytes(tmp_path / "snapshots") == before > 0


def test_a_sweep_removes_what_no_list_names(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    project = write_files(tmp_path / "project", FILES)
    send_early(snapshots, EarlyContents(list_project_files(project), FileIndex(project)))
    assert count_bytes(tmp_path / "snapshots") > 0
    snapshots.sweep_contents()
    assert count_bytes(tmp_path / "snapshots") == 0


def test_a_file_that_cannot_be_read_ends_the_sync(tmp_path: Path) -> None:
    project = write_files(tmp_path / "project", FILES)
    early = EarlyContents(list_project_files(project), FileIndex(project))
    (project / "a").chmod(0)
    with drop_privileges(), pytest.raises(UsageError, match="cannot read a: Permission denied"):
        list(early.pack())


def test_few_bytes_are_not_sent_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = write_files(tmp_path / "project", FILES)
    listing: Listing = list_project_files(project)
    assert not EarlyContents(listing, FileIndex(project)).are_worth_it()
    monkeypatch.setattr(early_contents, "_LEAST", listing.size)
    assert EarlyContents(listing, FileIndex(project)).are_worth_it()
