"""A fetch: nothing half, whatever the store does meanwhile."""

from __future__ import annotations

import errno
import itertools
import os
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores import fetch
from riseml.data_stores.data_cache import DataCache
from riseml.data_stores.fetch import FetchRequest, fetch_set
from riseml.data_stores.remote import RemoteFile, StoreUnavailable, TransferInterrupted
from riseml.spec.scalars.data_url import parse_data_url
from tests.support.memory_remote import MemoryRemote

URL = parse_data_url("s3://datasets/mnist")
FILES = {"train/images": bytes(range(256)) * 40_000, "labels": b"0 1 2", "empty": b""}


class Scene:
    """One cache, and fetches into it."""

    def __init__(self, folder: Path, remote: MemoryRemote) -> None:
        self.cache = DataCache(folder / "cache")
        self.remote = remote
        self.reports: list[tuple[int, int, str]] = []
        self.order = FetchRequest(
            url=URL,
            remote=remote,
            limit=1 << 30,
            etag_is_md5=True,
            stop=threading.Event(),
            progress=lambda *report: self.reports.append(report),
            patience=0.0,
            first_pause=0.001,
        )

    def fetch(self) -> Path:
        with ExitStack() as hold:
            return fetch_set(self.cache, self.order, hold)

    def refusal(self) -> EngineError:
        with pytest.raises(EngineError) as raised:
            self.fetch()
        return raised.value

    def left(self) -> list[Path]:
        """Return every file below the sets and the parts."""
        return [path for path in (self.cache.folder).rglob("*") if path.is_file()]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, MemoryRemote(dict(FILES)))


def test_a_set_is_fetched_once_and_read_only(scene: Scene) -> None:
    found = scene.fetch()
    assert {str(path.relative_to(found)): path.read_bytes() for path in found.rglob("*") if path.is_file()} == FILES
    assert {path.stat().st_mode & 0o777 for path in found.rglob("*")} == {0o444, 0o555}
    total = sum(map(len, FILES.values()))
    assert scene.reports[-1] == (total, total, "")
    count = len(scene.remote.ranges)
    assert scene.fetch() == found
    assert len(scene.remote.ranges) == count, "no byte came twice"


def test_another_content_is_another_set(scene: Scene) -> None:
    first = scene.fetch()
    scene.remote.contents["labels"] = b"3 4 5"
    second = scene.fetch()
    assert first != second
    assert ((first / "labels").read_bytes(), (second / "labels").read_bytes()) == (b"0 1 2", b"3 4 5")


def test_what_the_keys_of_a_user_have_fetched_is_fetched_again_for_another(scene: Scene) -> None:
    places = []
    for holder in ("paul", "ann", ""):
        scene.order = replace(scene.order, holder=holder)
        count = len(scene.remote.ranges)
        places.append(scene.fetch())
        assert len(scene.remote.ranges) > count, "no hit says that another user has it"
        assert scene.fetch() == places[-1]
    assert len(set(places)) == 3


def test_a_store_that_is_away_for_a_while_only_delays(scene: Scene) -> None:
    scene.order = replace(scene.order, patience=60.0)
    scene.remote.troubles = [StoreUnavailable("the store answers 503")]
    assert (scene.fetch() / "labels").read_bytes() == b"0 1 2"
    assert (0, 0, "the store answers 503") in scene.reports


def test_many_ranges_of_one_file_come_together(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_RANGE", 100_000)
    image = "train/images"
    for name in set(FILES) - {image}:
        del scene.remote.contents[name]
    assert (scene.fetch() / image).read_bytes() == FILES[image]
    assert len(scene.remote.ranges) == -(-len(FILES[image]) // 100_000)


def test_a_fetch_goes_on_in_the_middle_of_a_file(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_RANGE", 1 << 20)
    monkeypatch.setattr(fetch, "_WORKERS", 1)  # one range after the other: those that are in flight come again
    image = "train/images"

    def cut(file: RemoteFile) -> None:
        if len([path for path, _, _ in scene.remote.ranges if path == image]) == 3:
            scene.remote.before_read = lambda _: None
            raise StoreUnavailable("the connection broke")

    scene.remote.before_read = cut
    scene.order = replace(scene.order, patience=60.0)
    assert (scene.fetch() / image).read_bytes() == FILES[image]
    starts = [start for path, start, _ in scene.remote.ranges if path == image]
    assert starts == sorted(set(starts)), "no range came twice"


@pytest.mark.parametrize("place", ["files/labels", "new/1"])
@pytest.mark.parametrize("left", [b"", b"\0\0\0"])
def test_what_a_power_cut_has_damaged_comes_again(scene: Scene, place: str, left: bytes) -> None:
    def cut(file: RemoteFile) -> None:
        if file.path == "train/images":
            scene.order.stop.set()

    scene.remote.before_read = cut
    scene.refusal()
    (part,) = scene.cache.folder.glob("parts/*")
    for path in (part / "files" / "labels", part / "new" / "1"):
        path.unlink(missing_ok=True)
    (part / place).write_bytes(left)
    (part / "files").chmod(0o555)  # as after a try that died shortly before its end
    scene.remote.before_read = lambda _: None
    scene.order.stop.clear()
    assert (scene.fetch() / "labels").read_bytes() == b"0 1 2"
    total = sum(map(len, FILES.values()))
    assert scene.reports[-1] == (total, total, "")


def test_a_file_comes_from_a_server_that_cuts_each_connection(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    image, most = "train/images", 3 << 20
    read = scene.remote.read

    def cut(file: RemoteFile, start: int, stop: int) -> bytes:
        if stop - start > most:
            raise TransferInterrupted("the connection broke")
        return read(file, start, stop)

    monkeypatch.setattr(MemoryRemote, "read", lambda _, *span: cut(*span))
    assert (scene.fetch() / image).read_bytes() == FILES[image]
    assert {stop - start for path, start, stop in scene.remote.ranges if path == image} > {2 << 20}


def test_a_connection_that_breaks_at_each_size_is_a_store_that_is_away(scene: Scene) -> None:
    scene.remote.troubles = [TransferInterrupted("the connection broke")] * 100
    error = scene.refusal()
    assert (error.permanent, error.message) == (True, "the connection broke; nothing came for 0 s")


def test_a_store_that_stays_away_fails_with_its_reason(scene: Scene) -> None:
    scene.remote.troubles = [StoreUnavailable("the store answers 503")] * 9
    error = scene.refusal()
    assert (error.permanent, error.message) == (True, "the store answers 503; nothing came for 0 s")


def test_a_store_that_lists_its_files_and_never_answers_a_read_fails_in_time(scene: Scene) -> None:
    """Bytes that earlier tries left on the disk do not count as progress."""
    reads = itertools.count()

    def refuse(file: RemoteFile) -> None:
        if next(reads) > 100:
            scene.order.stop.set()  # ends the fetch with another error
        if file.path == "train/images":
            raise StoreUnavailable("the store answers 503")

    scene.remote.before_read = refuse
    error = scene.refusal()
    assert (error.permanent, error.message) == (True, "the store answers 503; nothing came for 0 s")


def test_the_patience_with_a_store_begins_when_it_does_not_answer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before that, a fetch may have waited for another one, or have read what an earlier try has left."""
    scene.order = replace(scene.order, patience=60.0)
    scene.remote.contents = {"labels": b"0 1 2"}
    waited = 0.0

    def refuse(_: RemoteFile) -> None:
        nonlocal waited
        waited = 3600.0
        scene.remote.before_read = lambda _: None
        raise StoreUnavailable("the store answers 503")

    scene.remote.before_read = refuse
    monkeypatch.setattr(fetch, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + waited))
    assert (scene.fetch() / "labels").read_bytes() == b"0 1 2"


def test_a_try_that_no_other_goes_on_with_leaves_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    list_files = scene.remote.list_files
    monkeypatch.setattr(MemoryRemote, "list_files", lambda _: [replace(one, etag="") for one in list_files()])
    monkeypatch.setattr(MemoryRemote, "read", lambda remote, file, *span: read_unmarked(remote, file, *span))
    tries = itertools.count()

    def cut(file: RemoteFile) -> None:
        if file.path == "train/images" and next(tries) < 3:
            assert len(list(scene.cache.folder.glob("parts/*"))) == 1
            raise StoreUnavailable("the connection broke")

    scene.order = replace(scene.order, patience=60.0)
    scene.remote.before_read = cut
    assert (scene.fetch() / "labels").read_bytes() == b"0 1 2"
    assert list(scene.cache.folder.glob("parts/*")) == []


def read_unmarked(remote: MemoryRemote, file: RemoteFile, start: int, stop: int) -> bytes:
    """Read from a store that tells no ETags."""
    remote.before_read(file)
    return remote.contents[file.path][start:stop]


def test_what_changes_all_the_time_is_refused(scene: Scene) -> None:
    def change(file: RemoteFile) -> None:
        scene.remote.contents[file.path] += b"x"

    scene.remote.before_read = change
    assert "changed while it was fetched" in scene.refusal().message
    assert not list(scene.cache.folder.glob("sets/*"))


def test_bytes_that_do_not_fit_the_etag_are_refused(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.remote.__class__, "read", lambda self, file, start, stop: b"y" * (stop - start))
    assert "is not what its ETag says" in scene.refusal().message
    scene.order = replace(scene.order, etag_is_md5=False)
    assert (scene.fetch() / "labels").read_bytes() == b"yyyyy"


def test_a_full_disk_leaves_nothing(scene: Scene) -> None:
    scene.remote.troubles = []

    def fill(_: RemoteFile) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    scene.remote.before_read = fill
    error = scene.refusal()
    assert (error.permanent, "no space was left" in error.message) == (True, True)
    assert scene.left() == []


def test_a_set_larger_than_the_cache_is_refused_before_a_byte_comes(scene: Scene) -> None:
    scene.order = replace(scene.order, limit=1000)
    assert scene.refusal().message == "the data has 10,240,005 bytes, and the cache of data holds 1,000"
    assert scene.remote.ranges == []


def test_a_cancelled_fetch_ends(scene: Scene) -> None:
    scene.remote.before_read = lambda _: scene.order.stop.set()
    assert scene.refusal().message == "the fetch was cancelled"


def test_two_fetches_of_one_thing_are_one(scene: Scene) -> None:
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(scene.fetch()), daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(scene.remote.ranges) == len({(path, start) for path, start, _ in scene.remote.ranges})
