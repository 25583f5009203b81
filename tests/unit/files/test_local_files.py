"""The files below a folder of this machine, as the server uses them: errors are those that users see."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from riseml.base.errors import Conflict, NotFound, Refused, UsageError
from riseml.files.local_files import LocalFiles
from riseml.files.storage_files import ListRequest
from riseml.job_programs.folder_contents import PART, FileUpload

UPLOAD = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "output").mkdir()
    return tmp_path / "output"


@pytest.fixture
def files(folder: Path) -> LocalFiles:
    def enter() -> int:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    return LocalFiles("output://4", enter, enter)


def put(files: LocalFiles, path: str, content: bytes, proof: bytes | None = None) -> None:
    writer = files.write_file(FileUpload(path, UPLOAD, len(content), mtime=7 * 10**9))
    try:
        writer.write(content + (hashlib.sha256(content).digest() if proof is None else proof))
        writer.finish()
    except BaseException:
        writer.discard()
        raise
    finally:
        writer.close()


def list_paths(files: LocalFiles) -> list[str]:
    return [entry.path for entry in files.list_files(ListRequest("", deep=True)).entries]


def test_what_is_written_is_listed_read_and_removed(files: LocalFiles, folder: Path) -> None:
    put(files, "a/model", b"weights")
    files.make_folder("b/c")
    files.make_link("b/link", "../a/model")
    assert list_paths(files) == ["a", "a/model", "b", "b/c", "b/link"]
    _, *pieces, proof = files.read_file("a/model", 0, None)
    assert (b"".join(pieces), proof) == (b"weights", b"0" + hashlib.sha256(b"weights").digest())
    assert (folder / "b" / "link").read_bytes() == b"weights"
    assert files.count_used() > 0
    assert files.count_free() > 0
    removed = files.remove_files("b", 10)
    assert (removed.files, removed.folders, removed.done) == (1, 2, True)
    assert list_paths(files) == ["a", "a/model"]


def test_errors_are_those_that_users_see(files: LocalFiles, folder: Path) -> None:
    (folder / "out").symlink_to("/etc")
    with pytest.raises(NotFound, match="output://4/absent does not exist"):
        next(files.read_file("absent", 0, None))
    with pytest.raises(Refused, match="output://4/out/passwd is behind a link"):
        next(files.read_file("out/passwd", 0, None))
    with pytest.raises(UsageError, match="is not a path that can be used"):
        files.make_folder("../x")
    with pytest.raises(Conflict, match="output://4/x did not arrive as it was sent"):
        put(files, "x", b"abc", bytes(32))
    with pytest.raises(NotFound, match="output://4/absent does not exist"):
        files.remove_files("absent", 1)
    assert list_paths(files) == ["out"]


def link(files: LocalFiles, source: Path, path: str, *, executable: bool = False) -> bool:
    above = os.open(source.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return files.link_file(FileUpload(path, UPLOAD, 0, executable=executable), above, os.fsencode(source.name))
    finally:
        os.close(above)


def test_a_file_of_this_machine_gets_a_second_name(files: LocalFiles, folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "large"
    source.write_text("x")
    (folder / "a").mkdir()
    (folder / "a" / f"{PART}{UPLOAD}").write_text("left by a server that was killed")
    for _ in range(2):
        assert link(files, source, "a/copy", executable=True)
        assert (folder / "a" / "copy").stat().st_ino == source.stat().st_ino
    assert source.stat().st_mode & 0o777 == 0o755
    source.write_text("another")
    assert link(files, source, "a/copy")
    assert list_paths(files) == ["a", "a/copy"], "nothing unfinished is left"


@pytest.mark.parametrize(
    ("kind", "path"),
    [("pipe", "copy"), ("file", ""), ("file", f"{PART}{UPLOAD}"), ("file", "out/x"), ("file", "taken")],
)
def test_no_other_thing_gets_a_second_name(
    files: LocalFiles, folder: Path, tmp_path: Path, kind: str, path: str
) -> None:
    (folder / "out").symlink_to(tmp_path)
    (folder / "taken").mkdir()
    source = tmp_path / "source"
    if kind == "pipe":
        os.mkfifo(source)
    else:
        source.write_text("x")
    with pytest.raises((Refused, UsageError)):
        link(files, source, path)
    assert sorted(item.name for item in folder.iterdir()) == ["out", "taken"]
    assert sorted(item.name for item in tmp_path.iterdir()) == ["output", "source"]
