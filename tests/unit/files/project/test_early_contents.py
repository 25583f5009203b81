"""Contents that a client sends before their list: each file is read once, and nothing of it is trusted."""

from __future__ import annotations

import itertools
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.errors import Unreachable, UsageError
from riseml.files.archives.manifest import write_manifest
from riseml.files.archives.pieces import INCOMING, RECORD
from riseml.files.project import early_contents, handed_packs
from riseml.files.project.archive import take_snapshot
from riseml.files.project.early_contents import EarlyContents
from riseml.files.project.file_index import FileIndex
from riseml.files.project.handed_packs import hand_over_packs
from riseml.files.project.listing import Listing, list_project_files
from riseml.store.projects.snapshots import SnapshotStore
from tests.support.waiting import DEADLINE
from tests.unit.files.project.builders import drop_privileges
from tests.unit.store.test_states import NAMES, read_tree, unpack

CONTENT_TABLE = {"contents.db", "contents.db-shm", "contents.db-wal"}
FILES = {"a": "one", "b/c": "two", "d": "", "e": "one", "run.sh": "three"}


def fill_folder(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def count_bytes(snapshots: Path) -> int:
    return sum(path.stat().st_size for path in (snapshots / "contents").glob("*.pack"))


def send_early(snapshots: SnapshotStore, early: EarlyContents, most: int | None = None) -> None:
    """Hand over the packs; the connection is broken after `most` of them."""
    hand_over_packs(early.pack(), incoming(snapshots), Taker(snapshots, most))


@dataclass
class Taker:
    """Takes packs without HTTP."""

    snapshots: SnapshotStore
    most: int | None
    taken: Iterator[int] = field(default_factory=itertools.count)

    def hand_over_pack(self, name: str) -> None:
        if self.most is not None and next(self.taken) >= self.most:
            raise Unreachable("the connection broke")
        self.snapshots.take_pack(name)

    def close(self) -> None:
        """Do nothing: there is no connection."""


class HungTaker:
    """A client whose server does not answer, until the client is closed."""

    def __init__(self) -> None:
        self.asked, self.closed = threading.Event(), threading.Event()

    def hand_over_pack(self, _: str) -> None:
        self.asked.set()
        assert self.closed.wait(DEADLINE)
        raise Unreachable("the connection was closed")

    def close(self) -> None:
        self.closed.set()


def test_ctrl_c_ends_a_request_that_the_server_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed_packs, "_PACK", 1)
    taker = HungTaker()

    def pack() -> Iterator[memoryview]:
        yield memoryview(RECORD.pack(1) + b"x")
        assert taker.asked.wait(DEADLINE)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hand_over_packs(pack(), tmp_path, taker)
    assert taker.closed.is_set()
    assert not list(tmp_path.iterdir())


def test_ctrl_c_stays_ctrl_c_when_a_pack_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed_packs, "_PACK", 1)
    taker = HungTaker()

    def pack() -> Iterator[memoryview]:
        yield memoryview(RECORD.pack(1) + b"x")
        assert taker.asked.wait(DEADLINE)
        (name,) = tmp_path.iterdir()
        name.unlink()
        name.mkdir()
        yield memoryview(RECORD.pack(1) + b"y")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hand_over_packs(pack(), tmp_path, taker)
    assert [path.is_dir() for path in tmp_path.iterdir()] == [True]


def incoming(snapshots: SnapshotStore) -> Path:
    return snapshots._folder / INCOMING


def sync(snapshots: SnapshotStore, folder: Path) -> tuple[str, list[str]]:
    """Sync as `riseml train` does with a server on this machine; return the digest, and what was still missing."""
    index = FileIndex(folder)
    early = EarlyContents(list_project_files(folder, index=index), index)
    send_early(snapshots, early)
    snapshot = take_snapshot(early.name_entries(), index)
    return snapshot.digest, snapshots.receive_manifest(snapshot.digest, write_manifest(snapshot.entries))


def test_what_was_sent_early_is_not_missing(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    project = fill_folder(tmp_path / "project", FILES)
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
    project = fill_folder(tmp_path / "project", FILES)
    listing = list_project_files(project)
    (project / "a").write_text("longer")
    (project / "b" / "c").unlink()
    early = EarlyContents(listing, FileIndex(project))
    assert b"".join(early.pack()) == b"".join(
        (RECORD.pack(0), RECORD.pack(3), b"one", RECORD.pack(5), b"three")  # d, e and run.sh
    )
    assert {one.path for one in early.name_entries().entries if one.content} == {"d", "e", "run.sh"}


def test_files_with_one_content_are_packed_once(tmp_path: Path) -> None:
    project = fill_folder(tmp_path / "project", dict.fromkeys("abc", "same"))
    early = EarlyContents(list_project_files(project), FileIndex(project))
    assert b"".join(early.pack()) == RECORD.pack(4) + b"same"
    assert len({one.content for one in early.name_entries().entries}) == 1


def test_a_file_that_changes_after_it_was_sent_is_missing_at_the_end(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    project = fill_folder(tmp_path / "project", FILES)
    send_early(snapshots, EarlyContents(list_project_files(project), FileIndex(project)))
    (project / "a").write_text("changed")
    snapshot = take_snapshot(list_project_files(project))
    missing = snapshots.receive_manifest(snapshot.digest, write_manifest(snapshot.entries))
    assert missing == [one.content for one in snapshot.entries if one.path == "a"]
    assert not snapshots.has_snapshot(snapshot.digest)


def test_what_is_there_already_takes_no_space(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    project = fill_folder(tmp_path / "project", FILES)
    sync(snapshots, project)
    before = count_bytes(tmp_path / "snapshots")
    assert sync(snapshots, project)[1] == []
    assert count_bytes(tmp_path / "snapshots") == before > 0


def test_a_sweep_removes_what_no_list_names(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    project = fill_folder(tmp_path / "project", FILES)
    send_early(snapshots, EarlyContents(list_project_files(project), FileIndex(project)))
    assert count_bytes(tmp_path / "snapshots") > 0
    snapshots.sweep_contents()
    assert count_bytes(tmp_path / "snapshots") == 0


def test_what_came_before_the_connection_broke_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_contents, "_PART", 1000)
    monkeypatch.setattr(handed_packs, "_PACK", 1000)
    snapshots = SnapshotStore(tmp_path / "snapshots")
    project = fill_folder(tmp_path / "project", {str(number): os.urandom(495).hex() for number in range(10)})
    early = EarlyContents(list_project_files(project), FileIndex(project))
    with pytest.raises(Unreachable):
        send_early(snapshots, early, most=3)
    assert not list(incoming(snapshots).iterdir())
    snapshot = take_snapshot(early.name_entries())
    assert len(snapshots.receive_manifest(snapshot.digest, write_manifest(snapshot.entries))) == 4


def test_a_file_that_cannot_be_read_ends_the_sync(tmp_path: Path) -> None:
    project = fill_folder(tmp_path / "project", FILES)
    early = EarlyContents(list_project_files(project), FileIndex(project))
    (project / "a").chmod(0)
    with drop_privileges(), pytest.raises(UsageError, match="cannot read a: Permission denied"):
        list(early.pack())


def test_few_bytes_are_not_sent_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = fill_folder(tmp_path / "project", FILES)
    listing: Listing = list_project_files(project)
    assert not EarlyContents(listing, FileIndex(project)).are_worth_it()
    monkeypatch.setattr(early_contents, "_LEAST", listing.size)
    assert EarlyContents(listing, FileIndex(project)).are_worth_it()
