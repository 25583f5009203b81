"""A disk that is really full: one sentence, nothing half, and everything goes on when there is room again."""

from __future__ import annotations

import functools
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.base.states import State
from riseml.data_stores.data_cache import DataCache
from riseml.data_stores.fetch import FetchRequest, fetch_set
from riseml.data_stores.save_notes import SaveNote
from riseml.server.data.output_saver import OutputSaver
from riseml.spec.config.types import SaveSection
from riseml.spec.scalars.data_url import parse_data_url
from tests.chaos.harms import fill_disk
from tests.support.memory_remote import MemoryRemote
from tests.support.memory_target import MemoryTarget
from tests.support.root import need_root
from tests.unit.control.simulation import change_policy, make_experiment, make_plan
from tests.unit.server.data.test_data_fetcher import make_fetcher


@functools.cache
def make_files() -> dict[str, bytes]:
    """Return a file of several ranges and a small one. They are made for the test: all workers import this module."""
    return {"large": os.urandom(1 << 20) * 20, "small": b"0 1 2"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    need_root("a file system of its own needs root")
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=700", "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def list_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_fetch_whose_disk_gets_full_leaves_nothing(disk: Path) -> None:
    cache, remote = DataCache(disk / "cache"), MemoryRemote(make_files())
    url = parse_data_url("s3://datasets/mnist")
    order = FetchRequest(
        url, remote, 1 << 30, etag_is_md5=True, stop=threading.Event(), progress=lambda *_: None, patience=0.0
    )
    lock = threading.Lock()

    def fill(_: object) -> None:
        with lock:
            if not (disk / "ballast").exists():
                others.enter_context(fill_disk(disk))

    remote.before_read = fill
    with ExitStack() as others, pytest.raises(EngineError) as raised:
        fetch_set(cache, order, others)
    remote.before_read = lambda _: None
    assert raised.value.message == f"no space was left in {cache.folder} while {url} was fetched"
    assert (raised.value.permanent, raised.value.hint, list_files(disk)) == (True, "free some space there", [])
    with fill_disk(disk), ExitStack() as hold, pytest.raises(EngineError, match=r"has 0 free$"):
        fetch_set(cache, order, hold)
    cache.note_use(1, {"x": "/x"})
    with fill_disk(disk), pytest.raises(OSError, match="No space left"):
        cache.note_use(2, {f"x{n}": "/" + "x" * 200 for n in range(100)})
    assert list_files(disk) == ["cache/uses/1.json"]
    with ExitStack() as hold:
        found = fetch_set(cache, order, hold)
    assert {path: (found / path).read_bytes() for path in make_files()} == make_files()


def test_a_save_on_a_full_disk_keeps_what_is_noted(disk: Path) -> None:
    _, hosts = make_fetcher(disk)
    (disk / "stores.yml").write_text('{"stores": [{"name": "lab", "saves": ["s3://runs"]}]}')
    (disk / "stores.yml").chmod(0o600)
    target = MemoryTarget()
    saves = OutputSaver("5e17e4", hosts, lambda *_: target)
    plan = change_policy(make_plan("master"), save=SaveSection("s3://runs"))
    experiment = make_experiment(1, plan, state=State.FINISHED)
    place = disk / "output" / experiment.owner.user / plan.project / "1"
    place.mkdir(parents=True)
    (place / "model").write_bytes(b"weights")
    before = SaveNote(trouble="x" * 3000)
    saves.notes.write(1, before)
    with fill_disk(disk):
        with pytest.raises(EngineError) as raised:
            saves.save_output(experiment, None, 1)
        assert raised.value.message == f"{disk}/saves cannot be written: No space left on device"
        assert (raised.value.permanent, raised.value.hint) == (False, "free some space there")
        with pytest.raises(EngineError, match="saves cannot be written: No space left on device"):
            saves.give_up(experiment)
        assert OutputSaver("5e17e4", hosts).read_note(experiment) == before
    assert list_files(disk / "saves") == ["1.json"]
    saves.save_output(experiment, None, 1)
    assert sorted(target.objects) == ["model", "riseml-saved.json"]
    assert OutputSaver("5e17e4", hosts).read_note(experiment).last == 1
