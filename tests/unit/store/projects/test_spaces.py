"""Spaces of a team's server: what one user has sent does not exist for another, who must send it again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from riseml.base.errors import NotFound, UsageError
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.manifest import digest_manifest, write_manifest
from riseml.files.archives.pieces import INCOMING, RECORD, write_pieces
from riseml.store.projects.snapshots import SnapshotStore
from riseml.store.projects.spaces import ProjectSpaces, name_project_space, name_user_space
from tests.support.archives import find_digest, pack

PAUL = ProjectSpaces(name_user_space("paul"))
ANN = ProjectSpaces(name_user_space("ann"))
VISION = name_project_space("vision")
ANN_OF_VISION = ProjectSpaces(name_user_space("ann"), (VISION,))
SECRET = b"the weights of paul"
SHARED = b"import torch"


def find_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def describe(*contents: bytes, size: int | None = None) -> tuple[str, bytes]:
    """Return the digest and the manifest of a project with these contents; `size` is the one that it claims."""
    entries = tuple(
        ArchiveEntry(f"file{place}", EntryKind.FILE, len(content) if size is None else size, content=find_hash(content))
        for place, content in enumerate(contents)
    )
    return digest_manifest(entries), write_manifest(entries)


async def stream(*contents: bytes) -> AsyncIterator[bytes]:
    for piece in write_pieces((RECORD.pack(len(content)) + content for content in contents), compress=False):
        yield piece


def send(store: SnapshotStore, spaces: ProjectSpaces, *contents: bytes) -> str:
    """Send a project as a client does, and return its digest."""
    digest, manifest = describe(*contents)
    missing = store.receive_manifest(digest, manifest, spaces)
    if missing:
        sent = [content for content in contents if find_hash(content) in missing]
        assert asyncio.run(store.receive_contents(digest, stream(*sent), spaces)) == []
    return digest


async def send_archive(store: SnapshotStore, archive: bytes, spaces: ProjectSpaces) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield archive

    await store.receive_archive(find_digest(archive), chunks(), spaces)


def test_a_state_exists_for_who_sent_it_alone(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    digest = send(store, PAUL, SECRET, SHARED)
    assert store.has_snapshot(digest, PAUL)
    assert store.find_files(digest, PAUL) is not None
    assert set(store.load_manifest(digest, PAUL).files) == {"file0", "file1"}
    assert store.has_snapshot(digest), "the server itself starts jobs with it"
    assert not store.has_snapshot(digest, ANN)
    assert store.find_files(digest, ANN) is None
    with pytest.raises(NotFound) as foreign:
        store.load_manifest(digest, ANN)
    with pytest.raises(NotFound) as absent:
        store.load_manifest("0" * 64, ANN)
    assert str(foreign.value).replace(digest[:12], "") == str(absent.value).replace("0" * 12, "")


def test_what_another_user_has_counts_as_missing_until_its_bytes_come(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    digest = send(store, PAUL, SECRET, SHARED)
    size = sum(pack.stat().st_size for pack in tmp_path.glob("contents/*.pack"))
    assert store.receive_manifest(*describe(SECRET, SHARED), ANN) == [find_hash(SECRET), find_hash(SHARED)]
    assert asyncio.run(store.receive_contents(digest, stream(SHARED), ANN)) == [find_hash(SECRET)]
    assert not store.has_snapshot(digest, ANN), "to know a digest is not to have the bytes"
    assert store.receive_manifest(*describe(SHARED), ANN) == [], "what ann has sent is not asked for again"
    assert asyncio.run(store.receive_contents(digest, stream(SECRET), ANN)) == []
    assert store.has_snapshot(digest, ANN)
    assert sum(pack.stat().st_size for pack in tmp_path.glob("contents/*.pack")) == size, "it is stored once"


@pytest.mark.parametrize("content", [SECRET, b"nobody has this"])
def test_a_wrong_size_tells_nothing_about_what_others_have(tmp_path: Path, content: bytes) -> None:
    store = SnapshotStore(tmp_path)
    send(store, PAUL, SECRET)
    assert store.receive_manifest(*describe(content, size=3), ANN) == [find_hash(content)]


def test_a_list_that_one_user_sent_is_not_completed_by_another(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    digest, manifest = describe(SECRET)
    store.receive_manifest(digest, manifest, PAUL)
    with pytest.raises(NotFound):
        asyncio.run(store.receive_contents(digest, stream(SECRET), ANN))
    store.receive_manifest(digest, manifest, ANN)
    assert asyncio.run(store.receive_contents(digest, stream(SECRET), PAUL)) == []
    assert (store.has_snapshot(digest, PAUL), store.has_snapshot(digest, ANN)) == (True, False)
    assert store.receive_manifest(digest, manifest, ANN) == [find_hash(SECRET)]


def test_an_archive_and_a_pack_belong_to_who_sent_them(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    archive = pack({"file0": SECRET.decode()})
    asyncio.run(send_archive(store, archive, PAUL))
    assert store.has_snapshot(find_digest(archive), PAUL)
    assert not store.has_snapshot(find_digest(archive), ANN)
    name = "a" * 32
    (tmp_path / INCOMING / name).write_bytes(RECORD.pack(len(SHARED)) + SHARED)
    store.take_pack(name, PAUL)
    assert store.receive_manifest(*describe(SHARED), PAUL) == []
    assert store.receive_manifest(*describe(SHARED), ANN) == [find_hash(SHARED)]


def test_a_state_that_is_given_to_a_project_is_for_its_members(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    digest = send(store, PAUL, SECRET)
    with pytest.raises(NotFound):
        store.give_state(digest, ANN, VISION)
    with pytest.raises(UsageError):
        store.give_state("../x", PAUL, VISION)
    assert not store.has_snapshot(digest, ANN_OF_VISION)
    store.give_state(digest, PAUL, VISION)
    assert store.has_snapshot(digest, ANN_OF_VISION)
    assert not store.has_snapshot(digest, ANN)
    assert store.receive_manifest(*describe(SECRET), ANN_OF_VISION) == [find_hash(SECRET)], "it is not ann's own"


def test_what_is_removed_is_nobodys(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    digest = send(store, PAUL, SECRET)
    assert store.remove_snapshot(digest)
    store.sweep_contents()
    send(store, ANN, SECRET)
    assert (store.has_snapshot(digest, ANN), store.has_snapshot(digest, PAUL)) == (True, False)
    assert store.receive_manifest(*describe(SECRET), PAUL) == [find_hash(SECRET)]


def test_after_a_damaged_table_everyone_sends_again(tmp_path: Path) -> None:
    digest = send(SnapshotStore(tmp_path), PAUL, SECRET)
    assert SnapshotStore(tmp_path).has_snapshot(digest, PAUL), "a later server knows it, too"
    for path in tmp_path.glob("spaces.db*"):
        path.write_bytes(b"no table" * 1000)
    store = SnapshotStore(tmp_path)
    assert not store.has_snapshot(digest, PAUL)
    assert send(store, PAUL, SECRET) == digest
    assert store.has_snapshot(digest, PAUL)


def test_a_server_of_one_user_keeps_no_table(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    digest, manifest = describe(SECRET)
    assert store.receive_manifest(digest, manifest) == [find_hash(SECRET)]
    assert asyncio.run(store.receive_contents(digest, stream(SECRET))) == []
    store.remove_snapshot(digest)
    store.sweep_contents()
    assert list(tmp_path.glob("spaces.db*")) == []
