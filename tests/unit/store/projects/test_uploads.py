"""Uploads: bytes in order, one call at a time, and packs that a client on this machine leaves for the server."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from riseml.base.errors import NotFound, StoreError, TooLarge, UsageError
from riseml.files.archives.pieces import INCOMING, RECORD
from riseml.store.projects.snapshots import SnapshotStore
from riseml.store.projects.uploads import UploadLimits, read_chunks
from tests.unit.files.project.early_packs import CONTENT_TABLE, count_bytes, incoming

CHUNK = b"x" * (1 << 20)


class SlowThread:
    """Stands for the thread that handles an upload; each call ends when the test says so."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.running = self.most = self.calls = 0

    async def call(self, handle: Callable[[bytes], object], data: bytes) -> None:
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await self.go.wait()
        handle(data)
        self.running -= 1


async def chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield CHUNK


async def turn(times: int = 10) -> None:
    """Let everything run that can."""
    for _ in range(times):
        await asyncio.sleep(0)


def test_a_cancelled_upload_still_handles_one_piece_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cancel() -> None:
        thread, got = SlowThread(), list[bytes]()
        monkeypatch.setattr(asyncio, "to_thread", thread.call)
        upload = asyncio.create_task(read_chunks(chunks(9), got.append, UploadLimits(tmp_path, 1 << 40, 600)))
        await turn()
        assert (thread.calls, upload.done()) == (1, False), "the second piece waits for the first one"
        upload.cancel()
        await turn()
        assert (thread.calls, upload.done()) == (1, False), "so does the end of the upload"
        thread.go.set()
        with pytest.raises(asyncio.CancelledError):
            await upload
        assert (thread.most, thread.running, len(got)) == (1, 0, 2)

    asyncio.run(cancel())


def test_an_upload_ends_with_the_error_of_its_piece(tmp_path: Path) -> None:
    def fail(data: bytes) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        asyncio.run(read_chunks(chunks(9), fail, UploadLimits(tmp_path, 1 << 40, 600)))


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
