"""Outputs that come back from a store: whole, with times and modes, and nothing half."""

from __future__ import annotations

import tracemalloc
from hashlib import sha256

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores.save_manifest import MANIFEST
from riseml.data_stores.save_output import KnownFiles
from riseml.executors.base import WorkCancelled
from riseml.job_programs.folder_contents import PART
from tests.unit.data_stores.save_site import Site, writes


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
