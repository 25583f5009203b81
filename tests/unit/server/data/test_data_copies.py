"""Copies of fetched data on hosts that share no folder with the server."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from riseml.base.errors import EngineError, Unreachable
from riseml.base.names import HostName
from riseml.data_stores.data_cache import DataCache, FileRow
from riseml.executors.base import WorkCancelled, WorkInterrupted, WorkReport
from riseml.executors.capabilities import DataVolume
from riseml.server.data.data_copies import CopyRequest, DataCopies
from tests.support.memory_data import MemoryData
from tests.support.memory_executor import MemoryExecutor
from tests.unit.server.data.test_data_fetcher import make_fetcher

H1 = HostName("h1")
DEADLINE = 60.0  # seconds
FULL = EngineError("the disk of the host is full", permanent=True)
SET = {"a": b"x" * 60, "b/c": b"y" * 40}


class Scene:
    """A server with a cache, and a host that does not see it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        _, self.hosts = make_fetcher(folder)
        self.copies = DataCopies("5e17e4", self.hosts)
        executor = self.hosts.pool.executors[H1]
        assert isinstance(executor, MemoryExecutor)
        self.data = executor.data
        self.reports: list[WorkReport] = []

    def make_set(self, key: str, contents: dict[str, bytes]) -> Path:
        """Put a set into the cache; return its files."""
        cache = DataCache(self.folder / "data-cache")
        part = cache.begin_set(key, 100, 1000)
        rows = []
        for path, content in contents.items():
            place = part / "files" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            digest = hashlib.sha256(content).hexdigest()
            rows.append(FileRow(path, len(content), place.stat().st_mtime_ns, digest))
        return cache.finish_set(key, f"s3://datasets/{key}", rows)

    def copy(self, files: Path, limit: int = 1000, stop: threading.Event | None = None) -> None:
        """Bring a set to the host."""
        self.copies.copy_set(CopyRequest(H1, files, limit, self.reports.append, stop or threading.Event()))

    def read(self, key: str) -> dict[str, bytes] | None:
        """Return what the host has of a set."""
        return self.data.volumes.get(self.copies.name_volume(key))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_set_goes_once_to_a_host(scene: Scene) -> None:
    files = scene.make_set("k1", SET)
    for _ in range(2):
        scene.copy(files)
    assert (scene.read("k1"), scene.data.archives) == (SET, 1)
    assert (scene.reports[-1].progress, scene.reports[-1].total) == (100, 100)
    assert scene.copies.find_hosts(frozenset({"k1"})) == {H1}
    assert scene.copies.find_hosts(frozenset({"k1", "k2"})) == frozenset()
    again = DataCopies("5e17e4", scene.hosts)
    assert again.find_hosts(frozenset({"k1"})) == {H1}, "the next server knows it"


def test_a_missing_volume_is_filled_again_and_unknown_files_are_removed(scene: Scene) -> None:
    files = scene.make_set("k1", SET)
    scene.copy(files)
    scene.data.volumes = {"riseml-fetched-5e17e4-lost": {}}
    scene.copies.find_lost(H1)
    assert scene.copies.find_hosts(frozenset({"k1"})) == frozenset()
    scene.copy(files)
    assert list(scene.data.volumes.values()) == [SET]


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_copy_that_ends_while_a_host_lists_its_volumes_is_not_lost(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, *, has_begun: bool
) -> None:
    files, list_volumes = scene.make_set("k1", SET), MemoryData.list_volumes
    goes_on, copied, begun = threading.Event(), threading.Event(), threading.Event()
    make_volume = MemoryData.make_volume

    def wait(data: MemoryData, volume: DataVolume) -> None:
        begun.set()
        assert goes_on.wait(DEADLINE)
        make_volume(data, volume)

    def copy() -> None:
        scene.copy(files)
        copied.set()

    def answer_late(data: MemoryData) -> frozenset[str]:
        found = list_volumes(data)
        if threading.current_thread() is threading.main_thread():
            if not has_begun:
                pool.submit(copy)
            goes_on.set()
            assert copied.wait(DEADLINE)
        return found

    monkeypatch.setattr(MemoryData, "make_volume", wait)
    monkeypatch.setattr(MemoryData, "list_volumes", answer_late)
    with ThreadPoolExecutor(1) as pool:
        if has_begun:
            pool.submit(copy)
            assert begun.wait(DEADLINE)
        scene.copies.find_lost(H1)
    assert scene.copies.find_hosts(frozenset({"k1"})) == {H1}
    assert scene.read("k1") == SET


def test_a_copy_that_is_cut_goes_on(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.data_stores.copy_set._MOST_FILES", 1)
    files = scene.make_set("k1", SET)
    stop = threading.Event()
    order = CopyRequest(H1, files, 1000, lambda report: stop.set() if report.progress >= len(SET["a"]) else None, stop)
    with pytest.raises(WorkCancelled):
        scene.copies.copy_set(order)
    assert (scene.read("k1"), scene.data.archives) == ({"a": SET["a"]}, 1)
    scene.data.troubles.append(Unreachable("the host does not answer"))
    with pytest.raises(Unreachable):
        scene.copy(files)
    assert scene.copies.find_hosts(frozenset({"k1"})) == frozenset(), "half a copy is none"
    scene.copy(files)
    assert (scene.read("k1"), scene.data.archives) == (SET, 2), "what had arrived was not sent again"


def test_a_copy_that_has_grown_before_it_failed_says_so(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.data_stores.copy_set._MOST_FILES", 1)
    files, write = scene.make_set("k1", SET), MemoryData.write_tar

    def die(*arguments: Any) -> None:
        write(*arguments)
        scene.data.troubles.append(Unreachable("the host does not answer"))

    monkeypatch.setattr(MemoryData, "write_tar", die)
    with pytest.raises(WorkInterrupted):
        scene.copy(files)
    scene.data.troubles[:] = [Unreachable("the host does not answer")]
    with pytest.raises(Unreachable) as raised:
        scene.copy(files)
    assert type(raised.value) is Unreachable, "nothing has arrived in this try"


def test_a_full_disk_leaves_nothing_half(scene: Scene) -> None:
    files = scene.make_set("k1", SET)
    scene.data.troubles.append(FULL)
    with pytest.raises(EngineError, match="the disk of the host is full"):
        scene.copy(files)
    assert (scene.data.volumes, scene.copies.list_copies(H1)) == ({}, {})


def test_the_oldest_unused_copies_make_room(scene: Scene) -> None:
    old, used, new = (scene.make_set(key, SET) for key in ("old", "used", "new"))
    scene.copy(used, 250)
    scene.copy(old, 250)
    scene.copies.note_readers({1: frozenset({(H1, "used")})})
    scene.copy(new, 250)
    assert {key for key in ("old", "used", "new") if scene.read(key)} == {"used", "new"}
    scene.copies.note_readers({1: frozenset({(H1, "used")}), 2: frozenset({(H1, "new")})})
    with pytest.raises(EngineError, match="open experiments use them") as raised:
        scene.copy(old, 250)
    assert not raised.value.permanent
    with pytest.raises(EngineError, match="may have 50") as raised:
        scene.copy(old, 50)
    assert raised.value.permanent
    volume = scene.copies.name_volume("new")
    with pytest.raises(EngineError, match="an open experiment uses it"):
        scene.copies.remove_copy(H1, volume)
    scene.copies.forget_readers({2})
    scene.copies.remove_copy(H1, volume)
    assert scene.read("new") is None


def test_a_removal_that_hangs_delays_no_other_copy(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    old, used, new = (scene.make_set(key, SET) for key in ("old", "used", "new"))
    scene.copy(old, 250)
    scene.copy(used, 250)
    scene.copies.note_readers({1: frozenset({(H1, "used")})})
    hangs, goes_on, remove = threading.Event(), threading.Event(), type(scene.data).remove_volume

    def hang(data: MemoryData, name: str) -> None:
        hangs.set()
        assert goes_on.wait(DEADLINE)
        remove(data, name)

    monkeypatch.setattr(MemoryData, "remove_volume", hang)
    with ThreadPoolExecutor(2) as pool:
        making = pool.submit(scene.copy, new, 250)
        try:
            assert hangs.wait(DEADLINE)
            pool.submit(scene.copy, used, 250).result(DEADLINE)
            (wanted,) = [copy for copy in scene.copies.list_copies(H1).values() if copy.key == "old"]
            assert scene.copies.is_used(H1, wanted), "a copy that is being removed cannot be read"
        finally:
            goes_on.set()
        making.result(DEADLINE)
    assert {key for key in ("old", "used", "new") if scene.read(key)} == {"used", "new"}


def test_what_the_host_has_is_compared(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    files = scene.make_set("k1", SET)
    with monkeypatch.context() as patch:
        patch.setattr(type(scene.data), "read_tar", lambda *_: iter_nothing())
        with pytest.raises(EngineError, match="the host"):
            scene.copy(files)
    assert scene.read("k1") is None
    scene.copy(files)
    assert scene.read("k1") == SET


def iter_nothing() -> Generator[bytes, None, None]:
    """Yield an empty archive."""
    yield bytes(1024)
