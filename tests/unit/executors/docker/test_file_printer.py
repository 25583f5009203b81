"""The program of the helper that reads stacks: it prints files and folders, and nothing else."""

from __future__ import annotations

import os
import platform
import struct
import subprocess
from pathlib import Path

import pytest

from riseml.executors.docker.file_printer import PROCESSORS, list_names, parse_blocks
from riseml.executors.docker.tiny_program import make_program_file

# The product has instructions for these two processors, and reads no stacks on another one. CI has amd64.
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")


@pytest.fixture
def printer(tmp_path: Path) -> Path:
    """The program as a file of this machine."""
    if not ARCH:
        pytest.skip("there are no instructions for this processor")
    path = tmp_path / "printer"
    path.write_bytes(make_program_file(PROCESSORS[ARCH]))
    path.chmod(0o700)
    return path


def print_files(printer: Path, *paths: Path | str) -> list[bytes | None]:
    return parse_blocks(subprocess.run([printer, *paths], check=True, stdout=subprocess.PIPE).stdout)


def test_it_prints_files_of_any_size_and_says_what_cannot_be_read(printer: Path, tmp_path: Path) -> None:
    content = os.urandom(200_000)
    (tmp_path / "large").write_bytes(content)
    (tmp_path / "empty").touch()
    answer = print_files(printer, tmp_path / "large", tmp_path / "none", tmp_path / "empty", "/proc/self/comm")
    assert answer == [content, None, b"", b"printer\n"]


def test_it_lists_a_folder(printer: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    names = {f"{number:03}" + "x" * 200 for number in range(500)}  # several calls of the kernel
    for name in names:
        (folder / name).touch()
    (entries,) = print_files(printer, folder)
    assert {*list_names(entries or b"")} == {".", "..", *names}


def test_a_file_without_end_is_cut(printer: Path) -> None:
    zeros, comm = print_files(printer, "/dev/zero", "/proc/self/comm")
    assert zeros == bytes(63 * 65536)
    assert comm == b"printer\n"


def test_bytes_that_are_cut_anywhere_are_harmless() -> None:
    whole = struct.pack("<q", 3) + b"abc" + struct.pack("<qq", 0, -2)
    assert parse_blocks(whole) == [b"abc", None]
    for size in range(len(whole)):
        assert len(parse_blocks(whole[:size])) <= 2
    assert [*list_names(b"\x00" * 100)] == []
    assert len([*list_names(b"\xff" * 30)]) == 1
