"""Copies of outputs into a store: what a manifest names is there and whole, wherever a copy was cut."""

from __future__ import annotations

import os

import pytest

from riseml.data_stores.remote import StoreUnavailable
from riseml.data_stores.save_manifest import ASIDE, MANIFEST
from riseml.data_stores.save_output import DestinationInUse, KnownFiles
from riseml.job_programs.folder_contents import PART
from tests.unit.data_stores.save_site import Site, writes

LINK = "it is a link, and a store has none"


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
