"""Snapshots: whole or not at all, though several clients upload at the same time."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import os
import tarfile
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from riseml.base.errors import NotFound, StoreError, TooLarge, TooSlow, UsageError
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.store.projects.snapshots import SnapshotStore
from tests.support.archives import find_digest, pack

FILES = {"riseml.yml": "project: a", "requirements.txt": "numpy", "run.sh": "#!/bin/sh"}
ARCHIVE = pack(FILES)
DIGEST = find_digest(ARCHIVE)
DIGEST_OF_BIN = hashlib.sha256(
    b"link\0bin/alias\0-\0run.sh\0"
    + b"file\0bin/run.sh\0x\0%s\0" % hashlib.sha256(b"true\n").hexdigest().encode()
    + b"folder\0empty\0-\0\0"
).hexdigest()


async def pieces(archive: bytes, size: int = 512) -> AsyncIterator[bytes]:
    for start in range(0, len(archive), size):
        yield archive[start : start + size]
        await asyncio.sleep(0)  # let the other upload continue


def receive(snapshots: SnapshotStore, chunks: AsyncIterator[bytes], digest: str = DIGEST) -> None:
    asyncio.run(snapshots.receive_archive(digest, chunks))


def left(folder: Path) -> list[str]:
    """Return what is in the folder of the snapshots, and every pack of contents."""
    packs = [path.name for path in (folder / "contents").iterdir() if not path.name.startswith("contents.db")]
    return sorted({*os.listdir(folder)} - {"contents", "incoming"}) + ["a pack"] * len(packs)


def read_stored(snapshots: SnapshotStore, digest: str) -> dict[str, tuple[ArchiveEntry, bytes]]:
    files = snapshots.find_files(digest)
    assert files is not None
    return {entry.path: (entry, b"".join(content)) for entry, content in files.read_files()}


def test_an_uploaded_archive_is_stored_without_an_owner(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    assert not snapshots.has_snapshot(DIGEST)
    receive(snapshots, pieces(ARCHIVE))
    assert snapshots.has_snapshot(DIGEST)
    assert set(snapshots.load_manifest(DIGEST).files) == {"riseml.yml", "requirements.txt", "run.sh"}
    assert snapshots.load_manifest(DIGEST).texts["requirements.txt"] == "numpy"
    found = read_stored(snapshots, DIGEST)
    assert {path: content.decode() for path, (_, content) in found.items()} == FILES
    assert {path for path, (entry, _) in found.items() if entry.executable} == {"run.sh"}
    assert left(tmp_path) == [f"{DIGEST}.manifest", "a pack"]


def test_the_files_of_a_project_are_listed_with_their_contents(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(ARCHIVE))
    listed = {entry.path: entry for entry in snapshots.list_files(DIGEST)}
    assert {path: (one.size, one.content) for path, one in listed.items()} == {
        path: (len(text), hashlib.sha256(text.encode()).hexdigest()) for path, text in FILES.items()
    }
    assert listed["run.sh"].kind is EntryKind.FILE
    with pytest.raises(NotFound):
        snapshots.list_files("0" * 64)


def test_eight_clients_upload_one_project_at_the_same_time(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)

    async def both() -> None:
        await asyncio.gather(*(snapshots.receive_archive(DIGEST, pieces(ARCHIVE)) for _ in range(8)))

    asyncio.run(both())
    assert {path: content.decode() for path, (_, content) in read_stored(snapshots, DIGEST).items()} == FILES
    assert left(tmp_path)[0] == f"{DIGEST}.manifest"


def test_an_upload_with_too_many_bytes_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TooLarge, match="more than 1,000 bytes"):
        receive(SnapshotStore(tmp_path, most=1000), pieces(ARCHIVE))
    assert left(tmp_path) == []


def test_an_upload_that_comes_to_a_stop_leaves_nothing(tmp_path: Path) -> None:
    async def stop() -> AsyncIterator[bytes]:
        yield ARCHIVE[:512]
        await asyncio.Event().wait()

    with pytest.raises(TooSlow, match="stopped coming"):
        receive(SnapshotStore(tmp_path, patience=0.1), stop())
    assert left(tmp_path) == []


def test_an_upload_of_single_bytes_is_too_slow(tmp_path: Path) -> None:
    async def trickle() -> AsyncIterator[bytes]:
        while True:
            yield b"x"
            await asyncio.sleep(0)

    with pytest.raises(TooSlow, match=r"less than 1 MiB in 0\.1 s"):
        receive(SnapshotStore(tmp_path, patience=0.1), trickle())
    assert left(tmp_path) == []


def test_an_upload_with_too_many_files_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.files.archives.tree.MOST_FILES", 2)
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
    (tmp_path / "contents" / "tmpabc.part").write_bytes(ARCHIVE[:700])
    (tmp_path / "contents" / "tmpdef.pack").write_bytes(ARCHIVE[:700])
    assert SnapshotStore(tmp_path).has_snapshot(DIGEST)
    assert left(tmp_path) == [f"{DIGEST}.manifest", "a pack"]


def test_a_snapshot_that_was_used_since_a_clean_up_judged_it_stays(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(ARCHIVE))
    os.utime(tmp_path / f"{DIGEST}.manifest", (1000.0, 1000.0))
    (judged,) = snapshots.list_snapshots()
    snapshots.load_manifest(DIGEST)  # an experiment is submitted
    assert not snapshots.remove_snapshot(DIGEST, judged.used)
    assert snapshots.has_snapshot(DIGEST)
    (judged,) = snapshots.list_snapshots()
    assert snapshots.remove_snapshot(DIGEST, judged.used)
    assert not snapshots.has_snapshot(DIGEST)


def test_a_snapshot_without_its_manifest_is_uploaded_again(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(ARCHIVE))
    (tmp_path / f"{DIGEST}.manifest").write_bytes(b"riseml manifest 1\0")
    assert not snapshots.has_snapshot(DIGEST)
    receive(snapshots, pieces(ARCHIVE))
    assert snapshots.has_snapshot(DIGEST)
    snapshots.remove_snapshot(DIGEST)
    snapshots.remove_snapshot(DIGEST)
    assert snapshots.sweep_contents() > 0
    assert left(tmp_path) == []


def test_file_names_of_any_bytes_are_kept(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    names = ["a\nb", "\udcff", "-x", "n" * 255, "/".join(["d" * 200] * 10)]
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
    snapshots = SnapshotStore(tmp_path)
    digest = find_digest(buffer.getvalue())
    receive(snapshots, pieces(buffer.getvalue(), 4096), digest)
    assert sorted(snapshots.load_manifest(digest).files) == sorted(names)


def test_only_checked_fields_of_a_member_are_stored(tmp_path: Path) -> None:
    """An upload cannot bring set-user-ID bits, owners or folders with rights of their own into the copy."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        folder, link, file, empty = (tarfile.TarInfo(name) for name in ("bin", "bin/alias", "bin/run.sh", "empty"))
        folder.type = empty.type = tarfile.DIRTYPE
        folder.mode = empty.mode = 0o2777
        link.type, link.linkname = tarfile.SYMTYPE, "run.sh"
        file.mode, file.uname, file.uid, file.mtime, file.size = 0o4711, "root", 4711, 1234.5, 5
        for member in (folder, link):
            tar.addfile(member)
        tar.addfile(file, io.BytesIO(b"true\n"))
        tar.addfile(empty)
    digest = DIGEST_OF_BIN
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(buffer.getvalue()), digest)
    found = read_stored(snapshots, digest)
    assert [(entry.path, entry.kind) for entry, _ in found.values()] == [
        ("bin/alias", EntryKind.LINK),
        ("bin/run.sh", EntryKind.FILE),
        ("empty", EntryKind.FOLDER),
    ]
    assert found["bin/alias"][0].target == "run.sh"
    copied, content = found["bin/run.sh"]
    assert (copied.executable, copied.mtime, content) == (True, 1234, b"true\n")
    assert set(snapshots.load_manifest(digest).files) == {"bin/alias", "bin/run.sh"}


def test_another_digest_than_that_of_the_files_is_refused(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    with pytest.raises(UsageError, match=f"have the digest {DIGEST}, and were sent as {'0' * 64}"):
        receive(snapshots, pieces(ARCHIVE), "0" * 64)
    assert left(tmp_path) == []


def test_a_stored_snapshot_is_never_written_again(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(ARCHIVE))
    manifest = tmp_path / f"{DIGEST}.manifest"
    before = (manifest.stat().st_ino, manifest.read_bytes())
    later = io.BytesIO(ARCHIVE)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=later) as source, tarfile.open(fileobj=buffer, mode="w") as tar:
        for member in source:
            member.mtime = 12345  # not part of the digest
            tar.addfile(member, source.extractfile(member))
    receive(snapshots, pieces(buffer.getvalue()))
    assert (manifest.stat().st_ino, manifest.read_bytes()) == before


@pytest.mark.parametrize(("name", "suffix"), [("riseml.yml", "json"), ("other", "json"), ("riseml.yml", "files")])
def test_what_an_earlier_version_stored_is_checked_when_it_is_used(tmp_path: Path, name: str, suffix: str) -> None:
    """Earlier versions kept a tar with a list; the first ones with the owner, under the digest that a client named."""
    with tarfile.open(tmp_path / f"{DIGEST}.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for path, text in FILES.items():
            member = tarfile.TarInfo(path.replace("riseml.yml", name))
            member.mode, member.uid, member.mtime, member.size = (
                0o755 if text[0] == "#" else 0o644,
                1000,
                1.5,
                len(text),
            )
            tar.addfile(member, io.BytesIO(text.encode()))
    (tmp_path / f"{DIGEST}.{suffix}").write_text('{"files": {}, "texts": {}}')
    snapshots = SnapshotStore(tmp_path)
    assert [held.digest for held in snapshots.list_snapshots()] == [DIGEST]
    if name == "other":
        assert snapshots.find_files(DIGEST) is None
        receive(snapshots, pieces(ARCHIVE))
    assert set(snapshots.load_manifest(DIGEST).files) == set(FILES)
    assert {path: content.decode() for path, (_, content) in read_stored(snapshots, DIGEST).items()} == FILES
    assert left(tmp_path) == [f"{DIGEST}.manifest", "a pack"]
    snapshots.remove_snapshot(DIGEST)
    snapshots.sweep_contents()
    assert left(tmp_path) == []


def test_texts_are_read_when_planning_asks_for_them(tmp_path: Path) -> None:
    files = {f"{number}.txt": f"{number}" * 9_000 for number in range(1000, 1400)} | {"large.txt": "x" * 70_000}
    archive = pack(files)
    digest = find_digest(archive)
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(archive, 1 << 20), digest)
    tracemalloc.start()
    try:
        texts = snapshots.load_manifest(digest).texts
        assert all(texts[name] == text for name, text in files.items() if name != "large.txt")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2**20
    assert (len(texts), next(iter(texts)), "large.txt" in texts) == (400, "1000.txt", False)
    snapshots.remove_snapshot(digest)
    snapshots.sweep_contents()
    with pytest.raises(NotFound, match="not on the server any more"):
        texts["1000.txt"]


def test_an_archive_is_checked_and_copied_on_python_3_11_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian 12 has that version; `TarInfo.replace` and the extraction filters came with 3.11.4."""
    monkeypatch.delattr(tarfile.TarInfo, "replace", raising=False)
    for name in ("data_filter", "tar_filter", "fully_trusted_filter"):
        monkeypatch.delattr(tarfile, name, raising=False)
    snapshots = SnapshotStore(tmp_path)
    receive(snapshots, pieces(ARCHIVE))
    assert snapshots.has_snapshot(DIGEST)
