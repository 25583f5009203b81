"""Files below a folder: listed in parts, read with a proof, written whole or not at all; no link is followed."""

from __future__ import annotations

import hashlib
import os
import resource
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.job_programs import folder_listing
from riseml.job_programs.folder_contents import PART, FileUpload, PartWriter, read_pieces
from riseml.job_programs.folder_listing import list_page, remove_tree
from riseml.job_programs.folder_paths import (
    FileErrorKind,
    FilesError,
    decode_name,
    encode_name,
    make_folder,
    split_path,
)
from riseml.job_programs.folder_removal import RemovalTally, remove_entry
from riseml.job_programs.folder_use import count_used
from tests.support.deep_folders import make_deep_folders

ODD = [b"line\nbreak", b"\xff%41", b"n" * 255, b" ", b"a b", "\u202etxt.exe".encode(), b"%", b"-rf"]
UPLOAD = "0123456789abcdef"
BIG = bytes(range(256)) * 20_000


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    folder = tmp_path / "root"
    folder.mkdir()
    opened = os.open(folder, os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.fixture
def folder(root: int, tmp_path: Path) -> Path:
    return tmp_path / "root"


def put(root: int, path: str, content: bytes, offset: int = 0, upload: str = UPLOAD) -> None:
    writer = PartWriter(root, FileUpload(path, upload, len(content), offset, 7 * 10**9))
    try:
        writer.write(content[offset:])
        writer.write(hashlib.sha256(content).digest())
        writer.finish()
    finally:
        writer.close()


def get(root: int, path: str) -> bytes:
    _, *pieces, proof = read_pieces(root, path, 0, None)
    assert proof == b"0" + hashlib.sha256(b"".join(pieces)).digest()
    return b"".join(pieces)


@contextmanager
def fails(trouble: FileErrorKind) -> Iterator[None]:
    with pytest.raises(FilesError) as caught:
        yield
    assert caught.value.trouble is trouble


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=1, max_size=255).filter(lambda name: name not in (b".", b"..") and not {0, 47} & set(name)))
def test_every_name_has_one_text(name: bytes) -> None:
    assert split_path(f"a/{encode_name(name)}") == [b"a", name]
    assert decode_name(encode_name(name)) == name


@pytest.mark.parametrize("path", ["..", "a/../b", "/etc", "a//b", "./a", "a/", "a\0b", "%2e%2e", "a%2fb/..", "x" * 256])
def test_a_path_never_leads_out(path: str, root: int) -> None:
    with fails(FileErrorKind.BAD_PATH):
        list_page(root, path, None, 10, deep=True)


def test_an_escaped_slash_does_not_lead_out(root: int, folder: Path) -> None:
    (folder / "a").mkdir()
    assert split_path("a%2Fb") != [b"a%2Fb"]
    with pytest.raises(FilesError):
        get(root, "a%2F..%2F..%2Fetc%2Fpasswd")


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


def test_a_file_that_is_rewritten_or_cut_gives_no_proof_and_one_that_grows_does(root: int, folder: Path) -> None:
    for change, proves in (("grow", b"0"), ("rewrite", b"1"), ("cut", b"1")):
        (folder / "x").write_bytes(BIG)
        reading = read_pieces(root, "x", 0, None)
        size = int(next(reading).split()[0])
        pieces = [next(reading)]
        with (folder / "x").open("r+b") as file:
            if change == "cut":
                file.truncate(100)
            else:
                file.seek(0, os.SEEK_END if change == "grow" else os.SEEK_SET)
                file.write(b"more")
        pieces += reading
        assert len(b"".join(pieces)) == size + 33
        assert pieces[-1][:1] == proves, change


def test_a_read_goes_on_only_in_the_same_file(root: int, folder: Path) -> None:
    (folder / "x").write_bytes(BIG)
    etag = next(read_pieces(root, "x", 0, None)).decode().split()[1]
    _, *rest = read_pieces(root, "x", 5_000_000, etag)
    assert b"".join(rest) == BIG[5_000_000:] + b"0" + hashlib.sha256(BIG).digest()
    (folder / "x").write_bytes(b"other")
    for start, tag in ((0, etag), (6, None)):
        with fails(FileErrorKind.CHANGED):
            next(read_pieces(root, "x", start, tag))


def test_a_file_gets_its_name_when_it_is_complete(root: int, folder: Path) -> None:
    put(root, "a/b", b"old")
    first = PartWriter(root, FileUpload("a/b", UPLOAD, len(BIG), mtime=10**9, executable=True))
    first.write(BIG[:100_000])
    other = PartWriter(root, FileUpload("a/b", "f" * 16, 3))
    other.write(b"new" + hashlib.sha256(b"new").digest())
    with fails(FileErrorKind.INCOMPLETE):
        first.finish()
    assert (folder / "a/b").read_bytes() == b"old"
    other.finish()
    assert (folder / "a/b").read_bytes() == b"new"
    first.close()
    other.close()
    with fails(FileErrorKind.CHANGED):
        put(root, "a/b", BIG, offset=100_001)
    put(root, "a/b", BIG, offset=100_000)
    assert (folder / "a/b").read_bytes() == BIG == get(root, "a/b")
    assert os.listdir(folder / "a") == ["b"]


def test_a_try_that_was_cut_may_still_write_beside_the_next(root: int, folder: Path) -> None:
    first = PartWriter(root, FileUpload("x", UPLOAD, len(BIG)))
    first.write(BIG[:100_000])
    second = PartWriter(root, FileUpload("x", UPLOAD, len(BIG), offset=70_000))  # what the client saw was there
    second.write(BIG[70_000:90_000])
    first.write(BIG[100_000:200_000])
    first.close()
    second.write(BIG[90_000:] + hashlib.sha256(BIG).digest())
    second.finish()
    second.close()
    assert (folder / "x").read_bytes() == BIG
    assert os.listdir(folder) == ["x"]


def test_what_is_damaged_or_has_no_room_is_not_kept(root: int, folder: Path) -> None:
    (folder / "taken").mkdir()
    writer = PartWriter(root, FileUpload("x", UPLOAD, 3))
    writer.write(b"abc" + bytes(32))
    with fails(FileErrorKind.DAMAGED):
        writer.finish()
    writer.discard()
    writer.close()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    writer = PartWriter(root, FileUpload("x", UPLOAD, len(BIG)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with fails(FileErrorKind.FULL):
            writer.write(BIG)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.discard()
    writer.close()
    for path, trouble in (
        ("taken", FileErrorKind.IS_FOLDER),
        ("", FileErrorKind.BAD_PATH),
        (f"{PART}{UPLOAD}", FileErrorKind.BAD_PATH),
        ("taken/" + "n" * 256, FileErrorKind.BAD_PATH),
    ):
        with fails(trouble):
            put(root, path, b"x")
    assert os.listdir(folder) == ["taken"]
    assert os.listdir(folder / "taken") == []


def test_a_removal_comes_in_parts(root: int, folder: Path) -> None:
    for at in range(10):
        (folder / f"a/{at}").mkdir(parents=True)
        (folder / f"a/{at}/x").write_bytes(b"123")
    parts = [remove_tree(root, "a", 8)]
    while not parts[-1].done:
        parts.append(remove_tree(root, "a", 8))
    assert (sum(one.files for one in parts), sum(one.folders for one in parts)) == (10, 11)
    assert (len(parts), sum(one.size for one in parts), os.listdir(folder)) == (3, 30, [])
    for path, trouble in (("", FileErrorKind.BAD_PATH), ("none", FileErrorKind.MISSING)):
        with fails(trouble):
            remove_tree(root, path, 8)


def test_a_removal_goes_to_any_depth_in_parts_with_few_descriptors(root: int, folder: Path) -> None:
    (folder / "a").mkdir()
    make_deep_folders(folder / "a", 500)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(name) for name in os.listdir("/proc/self/fd")) + 80, hard))
    try:
        parts = [remove_tree(root, "a", 400)]
        while not parts[-1].done:
            parts.append(remove_tree(root, "a", 400))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (sum(one.files for one in parts), sum(one.folders for one in parts)) == (500, 501)
    assert os.listdir(folder) == []


def test_a_removal_leaves_what_is_read_only_to_its_owner(folder: Path) -> None:
    (folder / "a").mkdir(mode=0o500)
    opened = os.open(folder, os.O_RDONLY)
    tally = RemovalTally(0)
    assert not remove_entry(opened, b"a", tally)
    os.close(opened)
    assert (folder / "a").stat().st_mode & 0o777 == 0o500


def test_what_a_folder_takes_of_its_disk_is_counted_once_and_without_holes(root: int, folder: Path) -> None:
    before = count_used(root)
    (folder / "inner").mkdir()
    (folder / "inner" / "one").write_bytes(bytes(1 << 20))
    (folder / "another").hardlink_to(folder / "inner" / "one")
    (folder / "link").symlink_to("/")
    with (folder / "hole").open("wb") as file:
        file.truncate(1 << 40)
    os.fsync(root)
    assert 1 << 20 <= count_used(root) - before < (1 << 20) + (64 << 10)


def test_what_lies_deeper_than_riseml_goes_is_not_counted_as_nothing(root: int, folder: Path) -> None:
    make_deep_folders(folder, 300)
    with fails(FileErrorKind.DEEP):
        count_used(root)


def test_what_may_be_listed_and_not_entered_is_not_counted_as_nothing(root: int, folder: Path) -> None:
    """A folder of mode 744 in the output of a job of another user. Root may enter it all the same."""
    (folder / "listed").mkdir()
    (folder / "listed" / "large").write_bytes(bytes(1 << 20))
    (folder / "listed").chmod(0o444)
    user = os.geteuid()
    os.seteuid(user or 65534)
    try:
        with fails(FileErrorKind.DENIED):
            count_used(root)
    finally:
        os.seteuid(user)
        (folder / "listed").chmod(0o755)
