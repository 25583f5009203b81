"""The cache of data: bounded, and nothing that is in use goes."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores import data_cache
from riseml.data_stores.data_cache import DataCache
from riseml.data_stores.fetch import FetchRequest, fetch_set
from riseml.spec.scalars.data_url import parse_data_url
from tests.support.memory_remote import MemoryRemote
from tests.support.waiting import DEADLINE


def fetch(cache: DataCache, name: str, size: int = 1000, limit: int = 5000) -> Path:
    """Fetch a set of one file of `size` bytes."""
    remote = MemoryRemote({"x": name.encode() * (size // len(name))})
    url = parse_data_url(f"s3://datasets/{name}")
    with ExitStack() as hold:
        order = FetchRequest(url, remote, limit, etag_is_md5=True, stop=threading.Event(), progress=lambda *_: None)
        return fetch_set(cache, order, hold)


def date(files: Path, seconds: float) -> None:
    """Set when a set was last used."""
    os.utime(files.parent, (seconds, seconds))


def urls(cache: DataCache) -> list[str]:
    return [held.url for held in cache.list_sets()]


def test_the_set_that_was_not_used_for_the_longest_time_goes_first(tmp_path: Path) -> None:
    cache = DataCache(tmp_path / "cache")
    for place, name in enumerate("abc"):
        date(fetch(cache, name), 1000.0 + place)
    date(fetch(cache, "a"), 2000.0)
    fetch(cache, "d", 2000)
    assert set(urls(cache)) == {"s3://datasets/c", "s3://datasets/a", "s3://datasets/d"}


def test_a_set_larger_than_the_disk_leaves_no_empty_part(tmp_path: Path) -> None:
    cache = DataCache(tmp_path / "cache")
    with pytest.raises(EngineError, match="bytes more, and the disk of"):
        cache.begin_set("k", 1 << 60, 1 << 61)
    assert cache.list_sets() == []


def test_what_an_open_experiment_reads_stays(tmp_path: Path) -> None:
    cache = DataCache(tmp_path / "cache")
    kept = fetch(cache, "a", 3000)
    cache.note_use(7, {"mnist": str(kept)})
    cache = DataCache(tmp_path / "cache")  # another server of the same home
    assert cache.find_use(7) == {"mnist": str(kept)}
    with pytest.raises(EngineError, match="leaves too little") as raised:
        fetch(cache, "b", 3000)
    assert not raised.value.permanent
    with pytest.raises(EngineError, match="open experiment"):
        cache.remove_set(kept.parent.name)
    assert (cache.find_view(7) / "mnist" / "x").read_bytes() == (kept / "x").read_bytes()
    cache.drop_uses_except(frozenset())
    assert cache.find_use(7) is None
    assert fetch(cache, "b", 3000).is_dir()
    assert not kept.exists()


def test_an_experiment_that_wants_a_set_while_it_is_removed_fetches_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = DataCache(tmp_path / "cache")
    key = fetch(cache, "a").parent.name
    wanted: list[Path] = []
    has_come = threading.Event()  # the experiment waits for the removal, or has a set
    wait = cache._free.wait

    def want() -> None:
        wanted.append(fetch(cache, "a"))
        has_come.set()

    def note_wait(seconds: float) -> bool:
        has_come.set()
        return wait(seconds)

    experiment = threading.Thread(target=want)

    def remove_tree(folder: Path) -> None:
        monkeypatch.undo()
        monkeypatch.setattr(cache._free, "wait", note_wait)
        experiment.start()
        assert has_come.wait(DEADLINE)
        data_cache.remove_tree(folder)

    monkeypatch.setattr(data_cache, "remove_tree", remove_tree)
    cache.remove_set(key)
    experiment.join()
    assert (wanted[0] / "x").is_file()


def test_a_set_that_someone_changed_comes_again(tmp_path: Path) -> None:
    cache = DataCache(tmp_path / "cache")
    found = fetch(cache, "a")
    (found / "x").chmod(0o600)
    (found / "x").write_bytes(b"changed")
    assert (fetch(cache, "a") / "x").read_bytes() == b"a" * 1000
    (found / "x").chmod(0o600)
    (found / "x").write_bytes(b"changed")
    cache.note_use(7, {"mnist": str(found)})
    with pytest.raises(EngineError, match="were changed"):
        fetch(cache, "a")


def test_what_a_removal_that_was_cut_has_left_of_a_set_is_listed_and_the_set_comes_again(tmp_path: Path) -> None:
    cache = DataCache(tmp_path / "cache")
    found = fetch(cache, "a")
    (found.parent / "files.json").unlink()  # of the two things in the folder a removal may take this one first
    assert [(held.key, held.url, held.size) for held in cache.list_sets()] == [(found.parent.name, "", 1000)]
    assert (fetch(cache, "a") / "x").read_bytes() == b"a" * 1000
    (found.parent / "files.json").unlink()
    cache.note_use(7, {"mnist": str(found)})
    with pytest.raises(EngineError, match="were changed"):
        fetch(cache, "a")


def test_parts_of_a_fetch_that_ended_make_room(tmp_path: Path) -> None:
    cache = DataCache(tmp_path / "cache")
    part = tmp_path / "cache" / "parts" / "0" / "files"
    part.mkdir(parents=True)
    (tmp_path / "cache").chmod(0o700)
    (part / "x").write_bytes(b"x" * 4500)
    fetch(cache, "a")
    assert not part.exists()


def test_a_use_that_cannot_be_removed_holds_up_nothing(tmp_path: Path) -> None:
    cache = DataCache(tmp_path / "cache")
    cache.note_use(7, {"mnist": str(fetch(cache, "a"))})
    note = tmp_path / "cache" / "uses" / "7.json"
    note.unlink()
    note.mkdir()
    cache.drop_uses_except(frozenset())
    assert cache.find_use(7) is None
