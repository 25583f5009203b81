"""Packs that a server on the same machine takes: an error or Ctrl-C leaves none behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.errors import Unreachable
from riseml.files.archives.manifest import write_manifest
from riseml.files.archives.pieces import RECORD
from riseml.files.project import early_contents, handed_packs
from riseml.files.project.archive import take_snapshot
from riseml.files.project.early_contents import EarlyContents
from riseml.files.project.file_index import FileIndex
from riseml.files.project.handed_packs import hand_over_packs
from riseml.files.project.listing import list_project_files
from riseml.store.projects.snapshots import SnapshotStore
from tests.support.waiting import DEADLINE
from tests.unit.files.project.early_packs import HungTaker, incoming, send_early, write_files


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


def test_what_came_before_the_connection_broke_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_contents, "_PART", 1000)
    monkeypatch.setattr(handed_packs, "_PACK", 1000)
    snapshots = SnapshotStore(tmp_path / "snapshots")
    project = write_files(tmp_path / "project", {str(number): os.urandom(495).hex() for number in range(10)})
    early = EarlyContents(list_project_files(project), FileIndex(project))
    with pytest.raises(Unreachable):
        send_early(snapshots, early, most=3)
    assert not list(incoming(snapshots).iterdir())
    snapshot = take_snapshot(early.name_entries())
    assert len(snapshots.receive_manifest(snapshot.digest, write_manifest(snapshot.entries))) == 4
