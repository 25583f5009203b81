"""Files below a folder, listed in parts with bounded memory; no link is followed."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from riseml.job_programs import folder_listing
from riseml.job_programs.folder_listing import list_page, remove_tree
from riseml.job_programs.folder_paths import FileErrorKind, make_folder, split_path
from tests.unit.job_programs.folder_files import fails, get, put

ODD = [b"line\nbreak", b"\xff%41", b"n" * 255, b" ", b"a b", "\u202etxt.exe".encode(), b"%", b"-rf"]


@pytest.mark.parametrize("chunk", [2, 50_000])
def test_pages_join_to_the_whole_listing(root: int, folder: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_listing, "_CHUNK", chunk)
    for name in ODD:
        os.makedirs(os.path.join(os.fsencode(folder), b"deep", name, b"er"))
        Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_bytes(name)
    whole = list_page(root, "", None, 1000, deep=True).entries
    assert len(whole) == 1 + 3 * len(ODD)
    paths = [split_path(one.path) for one in whole]
    assert paths == sorted(paths)
    for limit in (1, 3, 7):
        found, after = [], None
        while True:
            page = list_page(root, "", after, limit, deep=True)
            found += page.entries
            after = page.next
            if after is None:
                break
        assert found == whole
    assert [one.path for one in list_page(root, "", None, 1000, deep=False).entries] == [
        one.path for one in whole if "/" not in one.path
    ]


def test_a_page_reads_a_large_folder_once_and_holds_only_its_own_names(
    root: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5000):
        (folder / f"{number:05}").touch()
    scans: list[int] = []
    scan = os.scandir

    def count(place: int) -> object:
        scans.append(place)
        return scan(place)

    monkeypatch.setattr("os.scandir", count)
    tracemalloc.start()
    try:
        first = list_page(root, "", None, 100, deep=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    second = list_page(root, "", first.next, 100, deep=True)
    assert [one.path for one in (*first.entries, *second.entries)] == [f"{number:05}" for number in range(200)]
    assert (len(scans), peak < 200_000) == (2, True), peak


def test_no_link_is_followed(root: int, folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    (folder / "out").symlink_to(outside)
    (folder / "file").symlink_to(outside / "secret")
    os.mkfifo(folder / "pipe")
    entries = {one.path: one for one in list_page(root, "", None, 10, deep=True).entries}
    assert {path: one.kind for path, one in entries.items()} == {"out": "link", "file": "link", "pipe": "other"}
    assert entries["out"].target == str(outside)
    for path, trouble in (
        ("out/secret", FileErrorKind.LINK),
        ("file", FileErrorKind.LINK),
        ("pipe", FileErrorKind.SPECIAL),
    ):
        with fails(trouble):
            get(root, path)
    for path in ("out/new", "out/deep/new"):
        with fails(FileErrorKind.LINK):
            put(root, path, b"x")
    with fails(FileErrorKind.LINK):
        make_folder(root, "out/new")
    with fails(FileErrorKind.LINK):
        remove_tree(root, "out/secret", 10)
    put(root, "file", b"mine")
    assert remove_tree(root, "out", 10).files == 1
    assert [one.name for one in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "s"
    assert (folder / "file").read_text() == "mine"
