"""Files below a folder: read with a proof, and written whole or not at all."""

from __future__ import annotations

import hashlib
import os
import resource
from pathlib import Path

from riseml.job_programs.folder_contents import PART, FileUpload, PartWriter, read_pieces
from riseml.job_programs.folder_paths import FileErrorKind
from tests.unit.job_programs.folder_files import BIG, UPLOAD, fails, get, put


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
