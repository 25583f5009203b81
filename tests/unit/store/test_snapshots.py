"""Snapshots: whole or not at all, though several clients upload at the same time."""

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
        await asyncio.sleep(0)  # let the other upload go on


def receive(snapshots: SnapshotStore, chunks: AsyncIterator[bytes]) -> None:
    asyncio.run(snapshots.receive_archive(DIGEST, chunks, OWNER))


def left(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_an_uploaded_archive_is_stored_for_its_owner(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    assert not snapshots.has_snapshot(DIGEST)
    receive(snapshots, pieces(ARCHIVE))
    assert snapshots.has_snapshot(DIGEST)
    assert set(snapshots.load_manifest(DIGEST).files) == {"riseml.yml", "requirements.txt", "run.sh"}
    assert snapshots.load_manifest(DIGEST).texts == {"requirements.txt": "numpy"}
    with tarfile.open(snapshots.archive_path(DIGEST)) as tar:
        assert {(member.uid, member.gid, member.mode) for member in tar} == {(1000, 1000, 0o644), (1000, 1000, 0o755)}
    assert left(tmp_path) == [f"{DIGEST}.json", f"{DIGEST}.tar"]


def test_eight_clients_upload_one_project_at_the_same_time(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)

    async def both() -> None:
        await asyncio.gather(*(snapshots.receive_archive(DIGEST, pieces(ARCHIVE), OWNER) for _ in range(8)))

    asyncio.run(both())
    with tarfile.open(snapshots.archive_path(DIGEST)) as tar:
        assert [member.name for member in tar] == ["riseml.yml", "requirements.txt", "run.sh"]
    assert left(tmp_path) == [f"{DIGEST}.json", f"{DIGEST}.tar"]


def test_an_upload_with_too_many_bytes_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TooLarge, match="more than 1,000 bytes"):
        receive(SnapshotStore(tmp_path, most=1000), pieces(ARCHIVE))
    assert left(tmp_path) == []


def test_an_upload_with_too_many_files_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.store.project_archive.MAX_FILES", 2)
    with pytest.raises(TooLarge, match="more than 2 files"):
        receive(SnapshotStore(tmp_path), pieces(ARCHIVE))
    assert left(tmp_path) == []


def test_an_upload_onto_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    async def full() -> AsyncIterator[bytes]:
        yield ARCHIVE[:512]
        raise OSError(errno.ENOSPC, "no space left")

    with pytest.raises(StoreError, match=f"the disk of {tmp_path} is full"):
        receive(SnapshotStore(tmp_path), full())
    assert left(tmp_path) == []


def test_a_server_removes_what_an_interrupted_upload_left(tmp_path: Path) -> None:
    receive(SnapshotStore(tmp_path), pieces(ARCHIVE))
    (tmp_path / "tmpabc.part").write_bytes(ARCHIVE[:700])
    assert SnapshotStore(tmp_path).has_snapshot(DIGEST)
    assert left(tmp_path) == [f"{DIGEST}.json", f"{DIGEST}.tar"]


def test_a_snapshot_without_its_archive_is_uploaded_again(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(ARCHIVE))
    snapshots.archive_path(DIGEST).unlink()
    assert not snapshots.has_snapshot(DIGEST)
    receive(snapshots, pieces(ARCHIVE))
    assert snapshots.has_snapshot(DIGEST)
    snapshots.remove_snapshot(DIGEST)
    snapshots.remove_snapshot(DIGEST)
    assert left(tmp_path) == []


def test_file_names_of_any_bytes_are_kept(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    names = ["a\nb", "\udcff", "-x", "n" * 255, "/".join(["d" * 200] * 10)]
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(buffer.getvalue(), 4096))
    assert sorted(snapshots.load_manifest(DIGEST).files) == sorted(names)


def test_only_checked_fields_of_a_member_are_stored(tmp_path: Path) -> None:
    """An upload cannot bring set-user-ID bits, owners or extended attributes into the copy."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        folder, link, file = (tarfile.TarInfo(name) for name in ("bin", "bin/alias", "bin/run.sh"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o2755
        link.type, link.linkname = tarfile.SYMTYPE, "run.sh"
        file.mode, file.uname, file.mtime, file.size = 0o4755, "root", 1234, 5
        file.pax_headers = {"SCHILY.xattr.security.capability": "all"}
        tar.addfile(folder)
        tar.addfile(link)
        tar.addfile(file, io.BytesIO(b"true\n"))
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(buffer.getvalue()))
    with tarfile.open(snapshots.archive_path(DIGEST)) as tar:
        members = {member.name: member for member in tar}
        assert [member.type for member in members.values()] == [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.REGTYPE]
        assert members["bin/alias"].linkname == "run.sh"
        copied = members["bin/run.sh"]
        assert (copied.mode, copied.uid, copied.uname, copied.mtime) == (0o755, 1000, "", 1234)
        assert copied.pax_headers == {}
        content = tar.extractfile(copied)
        assert content is not None
        assert content.read() == b"true\n"
    assert set(snapshots.load_manifest(DIGEST).files) == {"bin/alias", "bin/run.sh"}


def test_an_archive_is_checked_and_copied_on_python_3_11_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian 12 has that version; `TarInfo.replace` and the extraction filters came with 3.11.4."""
    monkeypatch.delattr(tarfile.TarInfo, "replace", raising=False)
    for name in ("data_filter", "tar_filter", "fully_trusted_filter"):
        monkeypatch.delattr(tarfile, name, raising=False)
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(ARCHIVE))
    assert snapshots.has_snapshot(DIGEST)
