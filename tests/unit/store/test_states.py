"""States of projects: what a job sees is what the folder was, whatever changed and whatever broke on the way."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.errors import EngineError, NotFound, StoreError, TooLarge, UsageError
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.manifest import digest_manifest, write_manifest
from riseml.files.archives.pieces import write_pieces
from riseml.files.project import file_index
from riseml.files.project.archive import Snapshot, pack_contents, take_snapshot
from riseml.files.project.file_index import FileIndex
from riseml.files.project.listing import list_project_files
from riseml.files.project.unpacking import OpenFolder, unpack_entries
from riseml.store.projects.snapshots import SnapshotStore
from riseml.store.projects.spaces import ProjectSpaces
from riseml.store.projects.uploads import ContentReceiver
from tests.unit.files.project.builders import fill_folder

NAMES = st.sampled_from([b"a", b"b.py", b"d/x", b"d/e/y", b"\xff\n", b"d/\xc3\xbc \xfe", b"run.sh", b"-"])
KINDS = st.sampled_from(["write", "append", "remove", "mode", "link", "folder", "touch", "swap"])
EDITS = st.lists(
    st.tuples(KINDS, NAMES, st.binary(max_size=40)),
    max_size=12,
)

Tree = dict[bytes, tuple[str, bytes, bool]]


def read_tree(folder: Path) -> Tree:
    """Return kind, content and executable bit of everything, by path; of folders, those that are empty."""
    root = os.fsencode(folder)
    found: Tree = {}
    for at, folders, files in os.walk(root):
        for entry in [*files, *folders]:
            path = os.path.join(at, entry)
            inner = os.path.relpath(path, root)
            if os.path.islink(path):
                found[inner] = ("link", os.readlink(path), False)
            elif os.path.isfile(path):
                found[inner] = ("file", Path(os.fsdecode(path)).read_bytes(), bool(os.stat(path).st_mode & 0o100))
            elif not os.listdir(path):
                found[inner] = ("folder", b"", False)
    return found


def edit(folder: Path, what: str, name: bytes, data: bytes) -> None:
    """Change something in a folder; skip edits that are impossible."""
    path = os.path.join(os.fsencode(folder), name)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if what in ("write", "append"):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if what == "write" else os.O_APPEND))
            os.write(handle, data)
            os.close(handle)
        elif what == "remove":
            os.unlink(path)
        elif what == "mode":
            os.chmod(path, 0o755 if len(data) % 2 else 0o644, follow_symlinks=True)
        elif what == "link":
            os.symlink(b"a", path)
        elif what == "folder":
            os.makedirs(path)
        elif what == "touch":
            os.utime(path, (1, len(data)))
        elif what == "swap":
            os.rename(path, path + b"2")
    except OSError:
        return


async def chunks(pieces: Iterator[bytes], most: int | None = None) -> AsyncIterator[bytes]:
    for number, piece in enumerate(pieces):
        if number == most:
            raise ConnectionError("the connection broke")
        yield piece


def send(snapshots: SnapshotStore, snapshot: Snapshot) -> int:
    """Sync as `riseml train` does, and return how many contents were sent."""
    if snapshots.has_snapshot(snapshot.digest):
        return 0
    missing = snapshots.receive_manifest(snapshot.digest, write_manifest(snapshot.entries))
    if missing:
        stream = write_pieces(pack_contents(snapshot, missing), compress=True)
        assert asyncio.run(snapshots.receive_contents(snapshot.digest, chunks(stream))) == []
    return len(missing)


def unpack(snapshots: SnapshotStore, digest: str, target: Path) -> Path:
    files = snapshots.find_files(digest)
    assert files is not None
    target.mkdir()
    with ExitStack() as stack:
        root = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, root)
        unpack_entries(files, OpenFolder(root, stack), None)
    return target


def wait_for_tick(folder: Path) -> None:
    """Return when the clock of the file system has moved on: what changes from now on has other times."""
    probe = folder / "tick"
    probe.touch()
    before = probe.stat().st_mtime_ns
    while probe.stat().st_mtime_ns == before:
        probe.touch()


@given(st.lists(EDITS, min_size=2, max_size=4))
@settings(max_examples=25, deadline=None)
def test_an_index_in_use_changes_nothing(rounds: list[list[tuple[str, bytes, bytes]]]) -> None:
    """Files that change between two syncs are as old as those that an index has; here, by patching what is young."""
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_index, "_RACY", -(10**10))
        project = Path(place, "project")
        project.mkdir()
        for edits in rounds:
            wait_for_tick(Path(place))
            for one in edits:
                edit(project, *one)
            index = FileIndex(project, Path(place, "cache", "index"))
            snapshot = take_snapshot(list_project_files(project, index=index), index)
            index.save()
            assert snapshot.entries == take_snapshot(list_project_files(project)).entries
            again = list_project_files(project, index=FileIndex(project, Path(place, "cache", "index")))
            assert all(entry.content for entry in again.entries if entry.kind is EntryKind.FILE), "all are known now"


@given(st.lists(EDITS, min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_a_job_sees_what_the_folder_was(rounds: list[list[tuple[str, bytes, bytes]]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        project = Path(place, "project")
        project.mkdir()
        snapshots = SnapshotStore(Path(place, "snapshots"))
        for number, edits in enumerate(rounds):
            for one in edits:
                edit(project, *one)
            index = FileIndex(project, Path(place, "cache", "index"))
            snapshot = take_snapshot(list_project_files(project, index=index), index)
            index.save()
            send(snapshots, snapshot)
            assert read_tree(unpack(snapshots, snapshot.digest, Path(place, str(number)))) == read_tree(project)
            assert snapshot.digest == take_snapshot(list_project_files(project)).digest


def make_snapshot(project: Path, *names: str) -> Snapshot:
    fill_folder(project, *names)
    return take_snapshot(list_project_files(project))


def test_only_what_is_missing_is_sent(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    assert send(snapshots, make_snapshot(tmp_path / "project", "a", "b", "c")) == 3
    (tmp_path / "project" / "b").write_text("changed")
    (tmp_path / "project" / "copy").write_text("a")
    changed = take_snapshot(list_project_files(tmp_path / "project"))
    assert send(snapshots, changed) == 1
    assert send(snapshots, changed) == 0
    assert [entry.path for entry in snapshots.list_files(changed.digest)] == ["a", "b", "c", "copy"]


def test_a_sync_that_broke_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.files.archives.pieces.PIECE", 1000)
    snapshots = SnapshotStore(tmp_path / "snapshots")
    project = tmp_path / "project"
    project.mkdir()
    for number in range(10):
        (project / str(number)).write_bytes(os.urandom(990))
    snapshot = take_snapshot(list_project_files(project))
    manifest = write_manifest(snapshot.entries)
    missing = snapshots.receive_manifest(snapshot.digest, manifest)
    stream = write_pieces(pack_contents(snapshot, missing), compress=False)
    with pytest.raises(ConnectionError):
        asyncio.run(snapshots.receive_contents(snapshot.digest, chunks(stream, 5)))
    assert not snapshots.has_snapshot(snapshot.digest)
    again = SnapshotStore(tmp_path / "snapshots")  # the server was started again
    left = again.receive_manifest(snapshot.digest, manifest)
    assert 0 < len(left) < 10
    stream = write_pieces(pack_contents(snapshot, left), compress=False)
    assert asyncio.run(again.receive_contents(snapshot.digest, chunks(stream))) == []
    assert read_tree(unpack(again, snapshot.digest, tmp_path / "code")) == read_tree(project)


def test_what_waits_for_the_disk_does_not_stop_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a sync waits for the disk, and while `riseml system clean` rewrites packs."""
    threads: list[threading.Thread] = []
    close, keep = ContentReceiver.close, SnapshotStore._keep_manifest

    def note_and_close(receiver: ContentReceiver) -> None:
        threads.append(threading.current_thread())
        close(receiver)

    def note_and_keep(store: SnapshotStore, digest: str, data: bytes, spaces: ProjectSpaces | None) -> None:
        threads.append(threading.current_thread())
        keep(store, digest, data, spaces)

    monkeypatch.setattr(ContentReceiver, "close", note_and_close)
    monkeypatch.setattr(SnapshotStore, "_keep_manifest", note_and_keep)
    assert send(SnapshotStore(tmp_path / "snapshots"), make_snapshot(tmp_path / "project", "a", "b")) == 2
    assert len(threads) == 2
    assert threading.main_thread() not in threads


def test_the_index_does_not_know_a_file_that_grew_after_it_was_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_index, "_RACY", -(10**12))  # so that the file counts as unchanged for long
    fill_folder(tmp_path / "project", "log")
    index = FileIndex(tmp_path / "project", tmp_path / "index")
    listing = list_project_files(tmp_path / "project", index=index)
    (tmp_path / "project" / "log").write_text("log and more")
    take_snapshot(listing, index)
    index.save()
    index = FileIndex(tmp_path / "project", tmp_path / "index")
    (entry,) = list_project_files(tmp_path / "project", index=index).entries
    assert (entry.size, entry.content) == (len("log and more"), "")


def test_a_file_that_changes_during_the_sync_is_still_missing(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    snapshot = make_snapshot(tmp_path / "project", "a", "b")
    missing = snapshots.receive_manifest(snapshot.digest, write_manifest(snapshot.entries))
    (tmp_path / "project" / "b").write_text("B")
    stream = write_pieces(pack_contents(snapshot, missing), compress=False)
    left = asyncio.run(snapshots.receive_contents(snapshot.digest, chunks(stream)))
    assert left == [entry.content for entry in snapshot.entries if entry.path == "b"]
    assert not snapshots.has_snapshot(snapshot.digest)


def test_damage_on_the_server_is_repaired_by_the_next_sync(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    snapshot = make_snapshot(tmp_path / "project", "first", "second")
    send(snapshots, snapshot)
    (pack,) = (tmp_path / "snapshots" / "contents").glob("*.pack")
    pack.write_bytes(pack.read_bytes().replace(b"second", b"seconD"))
    with pytest.raises(EngineError, match="the server's copy of second is damaged") as raised:
        unpack(snapshots, snapshot.digest, tmp_path / "one")
    assert raised.value.permanent
    assert not snapshots.has_snapshot(snapshot.digest)
    assert send(snapshots, snapshot) == 1
    assert read_tree(unpack(snapshots, snapshot.digest, tmp_path / "two")) == read_tree(tmp_path / "project")


def test_two_syncs_at_once(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    snapshot = make_snapshot(tmp_path / "project", *(f"f{number}" for number in range(50)))
    threads = [threading.Thread(target=send, args=(snapshots, snapshot), daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_tree(unpack(snapshots, snapshot.digest, tmp_path / "code")) == read_tree(tmp_path / "project")
    snapshots.sweep_contents()
    assert read_tree(unpack(snapshots, snapshot.digest, tmp_path / "again")) == read_tree(tmp_path / "project")


def test_a_clean_up_keeps_what_a_sync_waits_for(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    old = make_snapshot(tmp_path / "project", "a", "b")
    send(snapshots, old)
    (tmp_path / "project" / "c").write_text("c")
    new = take_snapshot(list_project_files(tmp_path / "project"))
    missing = snapshots.receive_manifest(new.digest, write_manifest(new.entries))
    assert [held.size for held in snapshots.list_snapshots()] == [2]
    snapshots.remove_snapshot(old.digest)
    snapshots.sweep_contents()
    stream = write_pieces(pack_contents(new, missing), compress=False)
    assert asyncio.run(snapshots.receive_contents(new.digest, chunks(stream))) == []
    assert read_tree(unpack(snapshots, new.digest, tmp_path / "code")) == read_tree(tmp_path / "project")


def test_a_hostile_client_gets_nothing_stored(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots", most=1000)
    snapshot = make_snapshot(tmp_path / "project", "first", "second")
    with pytest.raises(UsageError, match="were sent as"):
        snapshots.receive_manifest("0" * 64, write_manifest(snapshot.entries))
    with pytest.raises(NotFound):
        asyncio.run(snapshots.receive_contents(snapshot.digest, chunks(iter([]))))
    send(snapshots, snapshot)
    lies = [ArchiveEntry("a", EntryKind.FILE, 4, content=snapshot.entries[0].content)]
    with pytest.raises(UsageError, match="another size than its content"):
        snapshots.receive_manifest(digest_manifest(lies), write_manifest(lies))
    large = [ArchiveEntry("a", EntryKind.FILE, 1001, content="0" * 64)]
    with pytest.raises(TooLarge):
        snapshots.receive_manifest(digest_manifest(large), write_manifest(large))
    assert [held.digest for held in snapshots.list_snapshots()] == [snapshot.digest]


def test_contents_that_come_again_and_again_are_not_kept_again(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path / "snapshots")
    (tmp_path / "project").mkdir()
    for name in "ab":
        (tmp_path / "project" / name).write_text(name * 50_000)
    snapshot = take_snapshot(list_project_files(tmp_path / "project"))
    missing = snapshots.receive_manifest(snapshot.digest, write_manifest(snapshot.entries))

    def find_size() -> int:
        return sum(path.stat().st_size for path in (tmp_path / "snapshots" / "contents").glob("*.pack"))

    async def receive(records: list[bytes]) -> list[str]:
        return await snapshots.receive_contents(snapshot.digest, chunks(write_pieces(records, compress=True)))

    first = b"".join(pack_contents(snapshot, missing[:1]))
    for _ in range(3):
        assert asyncio.run(receive([first, first])) == missing[1:]
    assert find_size() == len(first)
    with pytest.raises(TooLarge, match="more of the project's files came than their list names"):
        asyncio.run(receive([first] * 3))
    assert find_size() == len(first)


def test_the_disk_keeps_its_reserve_of_what_is_inflated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.store.projects.uploads._CHECK_INTERVAL", 100_000)
    monkeypatch.setattr("riseml.store.projects.uploads._DISK_RESERVE", 1 << 62)
    snapshots = SnapshotStore(tmp_path / "snapshots")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "zeros").write_bytes(bytes(200_000))
    snapshot = take_snapshot(list_project_files(tmp_path / "project"))
    missing = snapshots.receive_manifest(snapshot.digest, write_manifest(snapshot.entries))
    stream = b"".join(write_pieces(pack_contents(snapshot, missing), compress=True))
    assert len(stream) < 10_000
    with pytest.raises(StoreError, match="is full"):
        asyncio.run(snapshots.receive_contents(snapshot.digest, chunks(iter([stream]))))
