"""Copies of outputs into a store, and back: what a manifest names is there and whole, wherever a copy was cut."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores.remote import StoreUnavailable
from riseml.data_stores.restore_output import Restored, RestoreOrder, restore_output
from riseml.data_stores.save_manifest import ASIDE, MANIFEST, SaveManifest, read_manifest
from riseml.data_stores.save_output import (
    DestinationInUse,
    KnownFiles,
    SaveOrder,
    SavePlace,
    SaveResult,
    claim_place,
    save_output,
)
from riseml.executors.base import WorkCancelled
from riseml.files.local_files import LocalFiles
from riseml.job_programs.folder_contents import PART
from riseml.spec.scalars.globs import parse_glob
from tests.support.memory_target import MemoryTarget

PLACE = "s3://runs/paul/toaster/4"
LINK = "it is a link, and a store has none"


def is_of_jobs(path: str) -> bool:
    return path != "config"


@dataclass
class Site:
    """An output, a store, and what a server knows of both."""

    folder: Path
    target: MemoryTarget = field(default_factory=MemoryTarget)
    known: KnownFiles = field(default_factory=KnownFiles)
    only: tuple[str, ...] = ()
    attempt: int = 1
    before_read: Callable[[str], None] = lambda _: None
    after_read: Callable[[str], None] = lambda _: None

    def put(self, path: str, content: str, changed: float = 1000.0) -> None:
        """Write a file of the output."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        os.utime(file, (changed, changed))

    def files(self) -> LocalFiles:
        """Return the output as the server reads it."""

        def enter() -> int:
            return os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)

        return TouchedFiles(self, "output://4", enter, enter)

    def head(self, owner: str = "5e17 4") -> SaveManifest:
        return SaveManifest(owner, "paul.4", "2026-11-23T03:00:00+00:00", self.attempt, ())

    def save(self, owner: str = "5e17 4") -> SaveResult:
        """Copy; what is known stays known when it fails, as on the server's disk."""
        patterns = [parse_glob(text) for text in self.only]

        def note(known: KnownFiles) -> None:
            self.known = known

        def wants(path: str) -> bool:
            return not patterns or any(pattern.matches(path) for pattern in patterns)

        def open_place() -> SavePlace:
            return claim_place(self.target, PLACE, self.head(owner))

        order = SaveOrder(self.files(), open_place, self.head(owner), wants, is_of_jobs, note, lambda *_: None)
        found = save_output(order, self.known)
        self.known = found.known_files
        return found

    def manifest(self) -> SaveManifest:
        return read_manifest(self.target.objects[MANIFEST], PLACE)

    def check(self) -> dict[str, str]:
        """Check that every file of the manifest is there and whole, and return their contents."""
        found = {}
        for file in self.manifest().files:
            data = self.target.objects[file.key]
            assert (len(data), sha256(data).hexdigest()) == (file.size, file.sha256)
            found[file.path] = data.decode()
        return found

    def restore(self, check: Callable[[], None] = lambda: None) -> Restored:
        place = claim_place(self.target, PLACE, self.head())
        order = RestoreOrder(self.files(), place, is_of_jobs, check, lambda *_: None)
        return restore_output(order)


class TouchedFiles(LocalFiles):
    """Files that something changes when they are read."""

    def __init__(self, site: Site, *rest: object) -> None:
        super().__init__(*rest)  # type: ignore[arg-type]  # whatever its parent takes
        self._site = site

    def read_file(self, path: str, start: int, etag: str | None) -> Iterator[bytes]:
        self._site.before_read(path)
        pieces = super().read_file(path, start, etag)
        yield next(pieces)
        yield next(pieces)
        self._site.after_read(path)
        yield from pieces


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "output").mkdir()
    return Site(tmp_path / "output")


def writes(site: Site) -> list[str]:
    """Return what was written since the last call."""
    found = [key for method, key in site.target.calls if method == "write"]
    site.target.calls.clear()
    return found


def test_only_what_has_changed_travels_and_the_manifest_comes_last(site: Site) -> None:
    site.put("a/model.npy", "one")
    site.put("log", "first", 2000.0)
    site.save()
    first, *files, last = writes(site)
    assert (first, sorted(files), last) == (MANIFEST, ["a/model.npy", "log"], MANIFEST)
    assert site.check() == {"a/model.npy": "one", "log": "first"}
    site.save()
    assert writes(site) == []
    site.put("log", "second", 3000.0)
    site.put("new", "n", 3000.0)
    site.save()
    *files, first, last = writes(site)
    aside, new = sorted(files)
    assert (aside.startswith(ASIDE), aside.endswith("/log"), new) == (True, True, "new")
    assert (first, last) == (MANIFEST, MANIFEST)
    assert site.check() == {"a/model.npy": "one", "log": "second", "new": "n"}
    assert sorted(site.target.objects) == ["a/model.npy", "log", "new", MANIFEST], "nothing is left aside"


def test_what_a_job_removes_leaves_the_manifest_and_stays_in_the_store(site: Site) -> None:
    site.put("old", "1")
    site.put("kept", "2")
    site.save()
    (site.folder / "old").unlink()
    site.save()
    assert (site.check(), site.target.objects["old"]) == ({"kept": "2"}, b"1")


def test_an_output_that_has_lost_everything_replaces_nothing(site: Site) -> None:
    site.put("model", "1")
    site.put("config", "of the server")
    site.save()
    (site.folder / "model").unlink()
    site.put("config", "of the server, later", 2000.0)
    site.save()
    assert site.check() == {"model": "1", "config": "of the server"}
    site.put("next", "2", 2000.0)
    site.save()
    assert sorted(site.check()) == ["config", "next"]


@pytest.mark.parametrize(("method", "count"), [(m, n) for m in ("write", "copy", "remove", "list") for n in (1, 2, 3)])
def test_a_copy_that_is_cut_anywhere_leaves_whole_files_and_goes_on(site: Site, method: str, count: int) -> None:
    for name in ("a", "b", "c"):
        site.put(name, f"{name}1")
    site.save()
    for name in ("a", "b", "c", "d"):
        site.put(name, f"{name}2", 2000.0)
    left = count

    def cut(called: str, _: str) -> None:
        nonlocal left
        left -= called == method
        if left == 0:
            left = -1
            raise StoreUnavailable("the store answers 503")

    site.target.before = cut
    try:
        site.save()
    except StoreUnavailable:
        found = site.check()
        assert {name: text[1] for name, text in found.items()} in (
            {"a": "1", "b": "1", "c": "1"},
            {"a": "2", "b": "2", "c": "2", "d": "2"},
        )
    else:
        assert method in ("remove", "list"), "fewer calls than that"
    site.target.before = lambda *_: None
    site.save()
    assert site.check() == {"a": "a2", "b": "b2", "c": "c2", "d": "d2"}
    assert not [key for key in site.target.objects if key.startswith(ASIDE)]


def test_a_server_that_knows_nothing_any_more_goes_on_from_the_manifest(site: Site) -> None:
    site.put("a", "1")
    site.save()
    site.known = KnownFiles()
    site.put("a", "2", 2000.0)
    site.save()
    assert site.check() == {"a": "2"}


def test_what_arrived_before_a_cut_is_not_sent_again(site: Site) -> None:
    for number in range(9):
        site.put(f"f{number}", "x", 1000.0 + number)

    def cut(method: str, key: str) -> None:
        if (method, key) == ("write", "f8"):
            raise StoreUnavailable("the connection broke")

    site.target.before = cut
    with pytest.raises(StoreUnavailable):
        site.save()
    assert "f8" in site.known.missing
    arrived = {file.path for file in site.known.loose}
    site.target.before = lambda *_: None
    writes(site)
    site.save()
    assert set(writes(site)) == {f"f{number}" for number in range(9)} - arrived | {MANIFEST}
    assert site.known.missing == ()


def test_a_file_that_changes_while_it_is_read_is_read_again(site: Site) -> None:
    site.put("a", "one")

    def touch(path: str) -> None:
        if (site.folder / path).read_text() == "one":
            site.put(path, "two", 2000.0)

    site.after_read = touch
    assert site.save().left_out == ()
    assert site.check() == {"a": "two"}


def test_a_file_that_never_holds_still_is_left_out_and_its_old_version_stays(site: Site) -> None:
    site.put("a", "first")
    site.save()
    count = 0

    def touch(path: str) -> None:
        nonlocal count
        count += 1
        site.put(path, f"{count:05}", 2000.0 + count)

    site.put("a", "00000", 2000.0)
    site.after_read = touch
    assert site.save().left_out == (("a", "it changes all the time"),)
    assert site.check() == {"a": "first"}


def test_a_log_that_grows_is_saved_as_it_was(site: Site) -> None:
    site.put("log", "one\n")

    def grow(path: str) -> None:
        with (site.folder / path).open("a") as file:
            file.write("more\n")

    site.after_read = grow
    site.save()
    assert site.check()["log"].startswith("one\n")


def test_a_log_that_is_longer_at_each_reading_than_in_each_list_is_saved_up_to_its_length(site: Site) -> None:
    site.put("log", "one\n")
    site.put("model", "1")

    def grow(path: str) -> None:
        if path == "log":
            with (site.folder / path).open("a") as file:
                file.write("more\n")

    site.before_read = grow
    for lines in (3, 7):  # a copy reads it three times
        assert site.save().left_out == ()
        assert site.check() == {"log": "one\n" + "more\n" * lines, "model": "1"}
        grow("log")


def test_patterns_links_and_names_that_no_object_has(site: Site) -> None:
    site.only = ("checkpoints/**", "*.json")
    for path in ("checkpoints/a/1", "deep/result.json", "log", f"checkpoints/{PART}00", "checkpoints/a\nb"):
        site.put(path, "x")
    os.symlink("/etc/passwd", site.folder / "checkpoints" / "link")
    os.mkfifo(site.folder / "checkpoints" / "pipe")
    (site.folder / "checkpoints" / os.fsdecode(b"\xff")).write_text("x")
    found = site.save()
    assert sorted(site.check()) == ["checkpoints/a/1", "deep/result.json"]
    assert found.left_out == (
        ("checkpoints/%FF", "no object can have its name"),
        ("checkpoints/a\nb", "no object can have its name"),
        ("checkpoints/link", LINK),
        ("checkpoints/pipe", "it is not a regular file"),
    )


def test_the_place_of_another_experiment_is_left_alone(site: Site) -> None:
    site.put("a", "1")
    site.save()
    before = dict(site.target.objects)
    with pytest.raises(DestinationInUse):
        site.save(owner="other 4")
    assert site.target.objects == before


def test_an_output_comes_back_with_times_and_modes(site: Site) -> None:
    site.put("a/x", "1" * (3 << 20), 1234.5)
    (site.folder / "a/x").chmod(0o755)
    site.put("config", "of the server")
    site.save()
    other = Site(site.folder.with_name("other"), site.target, attempt=2)
    other.folder.mkdir()
    other.put("config", "of the second attempt")
    other.put(f"a/{PART}{sha256(b'restore a/x').hexdigest()[:16]}", "half")
    found = other.restore()
    assert [file.path for file in found.written] == ["a/x"]
    there = (other.folder / "a/x").stat()
    assert (there.st_mtime, there.st_mode & 0o777, (other.folder / "a/x").read_text()) == (
        1234.5,
        0o755,
        "1" * (3 << 20),
    )
    assert sorted(path.name for path in (other.folder / "a").iterdir()) == ["x"]
    assert (other.folder / "config").read_text() == "of the second attempt"
    other.known = KnownFiles(found.files)
    other.target.calls.clear()
    other.save()
    assert [key.rpartition("/")[2] for key in writes(other)] == ["config", MANIFEST, MANIFEST], (
        "what came back does not travel"
    )


def test_a_large_file_that_stays_is_not_held_in_memory(site: Site) -> None:
    size = 8 << 20
    site.put("model", "x" * size)
    site.save()
    tracemalloc.start()
    try:
        assert site.restore().kept == 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 2


def test_a_newer_file_stays_and_an_older_one_is_replaced(site: Site) -> None:
    for name in ("same", "newer", "older"):
        site.put(name, "saved", 2000.0)
    site.save()
    site.put("newer", "later", 3000.0)
    site.put("older", "early", 1000.0)
    found = site.restore()
    assert [file.path for file in found.written] == ["older"]
    assert found.kept == 2
    assert (site.folder / "newer").read_text() == "later"
    assert (site.folder / "older").read_text() == "saved"


@pytest.mark.parametrize("harm", ["changed", "short", "gone"])
def test_a_changed_copy_is_refused_and_leaves_no_file(site: Site, harm: str) -> None:
    site.put("a", "right")
    site.save()
    site.target.objects["a"] = {"changed": b"wrong", "short": b"r", "gone": b""}[harm]
    if harm == "gone":
        del site.target.objects["a"]
    (site.folder / "a").unlink()
    with pytest.raises(EngineError) as raised:
        site.restore()
    assert raised.value.permanent
    assert list(site.folder.iterdir()) == []


def test_a_restoration_that_must_end_does_so_within_a_file_and_leaves_nothing_of_it(site: Site) -> None:
    site.put("model", "m" * (24 << 20))
    site.save()
    (site.folder / "model").unlink()
    reads: list[str] = []
    site.target.before = lambda _, key: reads.append(key)

    def check() -> None:
        if reads.count("model") == 2:
            raise WorkCancelled("the restoration was cancelled")

    with pytest.raises(WorkCancelled):
        site.restore(check)
    assert (reads.count("model"), list(site.folder.iterdir())) == (2, [])
    assert [file.path for file in site.restore().written] == ["model"]
