"""Snapshots: there whole or not at all, whoever sends what at the same time."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from riseml.errors import StoreError, TooLarge
from riseml.model import Owner
from riseml.store.snapshots import SnapshotStore
from tests.support.rig import pack

OWNER = Owner("paul", 1000, 1000)
ARCHIVE = pack({"riseml.yml": "project: a", "requirements.txt": "numpy", "run.sh": "#!/bin/sh"})
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()


async def pieces(archive: bytes, size: int = 512) -> AsyncIterator[bytes]:
    for start in range(0, len(archive), size):
        yield archive[start : start + size]
        await asyncio.sleep(0)  # let the other one have its turn


def receive(snapshots: SnapshotStore, chunks: AsyncIterator[bytes]) -> None:
    asyncio.run(snapshots.receive_archive(DIGEST, chunks, OWNER))


def left(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_what_was_sent_is_there(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    assert not snapshots.has_snapshot(DIGEST)
    receive(snapshots, pieces(ARCHIVE))
    assert snapshots.has_snapshot(DIGEST)
    assert set(snapshots.load_manifest(DIGEST).files) == {"riseml.yml", "requirements.txt", "run.sh"}
    assert snapshots.load_manifest(DIGEST).texts == {"requirements.txt": "numpy"}
    with tarfile.open(snapshots.archive_path(DIGEST)) as tar:
        assert {(member.uid, member.gid, member.mode) for member in tar} == {(1000, 1000, 0o644), (1000, 1000, 0o755)}
    assert left(tmp_path) == [f"{DIGEST}.json", f"{DIGEST}.tar"]


def test_the_same_project_from_two_sides_at_the_same_time(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)

    async def both() -> None:
        await asyncio.gather(*(snapshots.receive_archive(DIGEST, pieces(ARCHIVE), OWNER) for _ in range(8)))

    asyncio.run(both())
    with tarfile.open(snapshots.archive_path(DIGEST)) as tar:
        assert [member.name for member in tar] == ["riseml.yml", "requirements.txt", "run.sh"]
    assert left(tmp_path) == [f"{DIGEST}.json", f"{DIGEST}.tar"]


def test_too_many_bytes(tmp_path: Path) -> None:
    with pytest.raises(TooLarge, match="more than 1,000 bytes"):
        receive(SnapshotStore(tmp_path, most=1000), pieces(ARCHIVE))
    assert left(tmp_path) == []


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.store.snapshots.MOST_FILES", 2)
    with pytest.raises(TooLarge, match="more than 2 files"):
        receive(SnapshotStore(tmp_path), pieces(ARCHIVE))
    assert left(tmp_path) == []


def test_a_full_disk(tmp_path: Path) -> None:
    async def full() -> AsyncIterator[bytes]:
        yield ARCHIVE[:512]
        raise OSError(errno.ENOSPC, "no space left")

    with pytest.raises(StoreError, match=f"the disk of {tmp_path} is full"):
        receive(SnapshotStore(tmp_path), full())
    assert left(tmp_path) == []


def test_what_a_killed_server_left_half_done_is_removed(tmp_path: Path) -> None:
    receive(SnapshotStore(tmp_path), pieces(ARCHIVE))
    (tmp_path / "tmpabc.part").write_bytes(ARCHIVE[:700])
    assert SnapshotStore(tmp_path).has_snapshot(DIGEST)
    assert left(tmp_path) == [f"{DIGEST}.json", f"{DIGEST}.tar"]


def test_one_that_lost_its_half_is_sent_again(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(ARCHIVE))
    snapshots.archive_path(DIGEST).unlink()
    assert not snapshots.has_snapshot(DIGEST)
    receive(snapshots, pieces(ARCHIVE))
    assert snapshots.has_snapshot(DIGEST)
    snapshots.remove_snapshot(DIGEST)
    snapshots.remove_snapshot(DIGEST)
    assert left(tmp_path) == []


def test_names_of_any_bytes_come_back(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    names = ["a\nb", "\udcff", "-x", "n" * 255, "/".join(["d" * 200] * 10)]
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(buffer.getvalue(), 4096))
    assert sorted(snapshots.load_manifest(DIGEST).files) == sorted(names)
