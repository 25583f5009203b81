"""Packs that a client on the same machine leaves for the server: what the server takes, and what it removes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from riseml.base.errors import NotFound, StoreError, TooLarge, UsageError
from riseml.files.archives.pieces import INCOMING, RECORD
from riseml.store.projects.snapshots import SnapshotStore
from tests.unit.files.project.early_packs import CONTENT_TABLE, count_bytes, incoming

ONE = RECORD.pack(1) + b"x"


def leave_pack(snapshots: SnapshotStore, data: bytes) -> str:
    """Leave a file in the folder of incoming packs, and return its name."""
    name = os.urandom(16).hex()
    (incoming(snapshots) / name).write_bytes(data)
    return name


def test_the_limit_of_a_project_holds(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots", most=1000)
    with pytest.raises(TooLarge):
        snapshots.take_pack(leave_pack(snapshots, RECORD.pack(993) + bytes(993)))
    snapshots.take_pack(leave_pack(snapshots, RECORD.pack(992) + bytes(992)))
    assert count_bytes(tmp_path / "snapshots") == 1000


@pytest.mark.parametrize("data", [b"1234567", RECORD.pack(3) + b"on", RECORD.pack(1) + b"on", RECORD.pack(2**63)])
def test_a_file_that_is_not_a_pack_is_refused_and_removed(tmp_path: Path, data: bytes) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    with pytest.raises(UsageError, match="cut off"):
        snapshots.take_pack(leave_pack(snapshots, data))
    assert not list(incoming(snapshots).iterdir())
    assert {path.name for path in (tmp_path / "snapshots" / "contents").iterdir()} <= CONTENT_TABLE


def test_a_pack_is_a_file_of_the_folder(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    secret = tmp_path / "secret"
    secret.write_bytes(ONE)
    link = incoming(snapshots) / ("a" * 32)
    link.symlink_to(secret)
    (incoming(snapshots) / ("b" * 32)).mkdir()
    for name in ("a" * 32, "b" * 32):
        with pytest.raises((UsageError, NotFound)):
            snapshots.take_pack(name)
    for name in ("../../../secret", "..", "", "A" * 32, "b" * 33):
        with pytest.raises(UsageError, match="not the name of a pack"):
            snapshots.take_pack(name)
    assert secret.exists()
    assert count_bytes(tmp_path / "snapshots") == 0


def test_a_pack_is_taken_once(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    name = leave_pack(snapshots, ONE)
    snapshots.take_pack(name)
    with pytest.raises(NotFound):
        snapshots.take_pack(name)


def test_what_a_client_left_is_removed(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    old, new = (incoming(snapshots) / leave_pack(snapshots, b"left") for _ in range(2))
    os.utime(old, (0, 0))
    assert snapshots.sweep_contents() == 4
    assert (old.exists(), new.exists()) == (False, True)
    SnapshotStore(tmp_path / "snapshots")  # a server that starts
    assert not new.exists()


def test_a_disk_without_its_reserve_takes_no_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    name = leave_pack(snapshots, ONE)
    monkeypatch.setattr("riseml.store.projects.uploads._DISK_RESERVE", 2**63)
    with pytest.raises(StoreError, match="is full"):
        snapshots.take_pack(name)


def test_a_client_that_was_killed_leaves_its_packs_until_the_next_one_comes(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    left, other = (incoming(snapshots) / leave_pack(snapshots, ONE) for _ in range(2))
    os.utime(left, (0, 0))
    snapshots.take_pack(leave_pack(snapshots, ONE))
    assert (left.exists(), other.exists()) == (False, True)


def test_only_packs_are_removed_whatever_their_time_is(tmp_path: Path) -> None:
    """The user may have moved the folder to another disk, whose clock is ahead."""
    home, disk = tmp_path / "snapshots", tmp_path / "disk"
    home.mkdir()
    disk.mkdir()
    (home / INCOMING).symlink_to(disk)
    (disk / "precious").write_text("mine")
    pack = disk / ("a" * 32)
    pack.write_bytes(ONE)
    os.utime(pack, (time.time() + 3600,) * 2)
    SnapshotStore(home)
    assert [path.name for path in disk.iterdir()] == ["precious"]


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    incoming(snapshots).rmdir()
    assert snapshots.sweep_contents() == 0
    snapshots.take_pack(leave_pack(snapshots, ONE))


def test_a_pack_that_cannot_be_removed_ends_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "snapshots" / INCOMING / ("c" * 32)
    folder.mkdir(parents=True)
    snapshots = SnapshotStore(tmp_path / "snapshots")
    assert f"the pack {folder} cannot be removed: Is a directory" in caplog.text
    assert snapshots.sweep_contents() == 0


def test_a_folder_on_another_disk_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    incoming(snapshots).rmdir()
    incoming(snapshots).symlink_to("/proc/self")  # a folder of another file system that every machine has
    with pytest.raises(StoreError, match=r"cannot take over the pack d+: "):
        snapshots.take_pack("d" * 32)
    assert f"the server cannot take over packs from {incoming(snapshots)}: " in caplog.text


def test_a_pack_has_a_bound_for_its_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight zeros are a content, and a file without blocks has as many as its size says."""
    monkeypatch.setattr("riseml.store.projects.uploads.MOST_FILES", 9)
    snapshots = SnapshotStore(tmp_path / "snapshots")
    snapshots.take_pack(leave_pack(snapshots, bytes(72)))
    with pytest.raises(TooLarge, match="more than 9 contents"):
        snapshots.take_pack(leave_pack(snapshots, bytes(80)))
    monkeypatch.setattr("riseml.store.projects.uploads._LARGEST_PACK", 79)
    with pytest.raises(TooLarge, match="more than 79 bytes"):
        snapshots.take_pack(leave_pack(snapshots, bytes(80)))


def test_a_pack_that_no_table_names_leaves_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk may be full, and the user tries again."""
    snapshots = SnapshotStore(tmp_path / "snapshots")

    def fail(*_: object) -> None:
        raise StoreError("the table cannot be written")

    with monkeypatch.context() as patch:
        patch.setattr("riseml.store.projects.contents.ContentStore._enter_contents", fail)
        with pytest.raises(StoreError, match="cannot be written"):
            snapshots.take_pack(leave_pack(snapshots, ONE))
    assert count_bytes(tmp_path / "snapshots") == 0
    snapshots.take_pack(leave_pack(snapshots, ONE))
    assert count_bytes(tmp_path / "snapshots") == len(ONE)
