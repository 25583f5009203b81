"""A file of the user's cache: its content comes back, or nothing when it cannot be trusted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from riseml.files.project.cache_file import CacheFile


def make_file(folder: Path, name: str = "index", kind: str = "index 1", most: int = 3) -> CacheFile:
    return CacheFile(folder / "cache" / name, kind, most)


@pytest.mark.parametrize("content", [b"", b"text\n", bytes(range(256)) * 100])
def test_what_was_written_is_read_by_a_later_command(tmp_path: Path, content: bytes) -> None:
    assert make_file(tmp_path).read() == b""
    make_file(tmp_path).write(b"an older one")
    make_file(tmp_path).write(content)
    assert make_file(tmp_path).read() == content
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert make_file(tmp_path, kind="index 2").read() == b"", "another form"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def change(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"X")


def open_to_others(path: Path) -> None:
    path.chmod(0o620)


def replace_by_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("harm", [cut, change, open_to_others, replace_by_link, replace_by_pipe, Path.unlink])
def test_a_file_that_cannot_be_trusted_is_empty(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    file = make_file(tmp_path)
    file.write(b"content")
    harm(file.path)
    assert file.read() == b""


def test_the_folder_keeps_the_files_that_were_written_last(tmp_path: Path) -> None:
    for at, name in enumerate("abcd"):
        file = make_file(tmp_path, name, most=2)
        file.write(name.encode())
        os.utime(file.path, (at, at))
    (tmp_path / "cache" / "0123.part").touch()
    make_file(tmp_path, "e", most=2).write(b"e")
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["0123.part", "e"]


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in its place")
    make_file(tmp_path).write(b"content")
    assert make_file(tmp_path).read() == b""
