"""What is read of a file that a job or an install step has written."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import docker
import pytest

from riseml.executors.docker.helper_container import read_small_file

MIB = 1 << 20


class Engine(docker.APIClient):
    """Gives one archive, piece by piece; it has no connection."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces = pieces
        self.is_closed = False

    def get_archive(self, *_: Any, **_options: Any) -> tuple[Iterator[bytes], dict[str, str]]:
        return self._give(), {}

    def _give(self) -> Iterator[bytes]:
        try:
            yield from self.pieces
        finally:
            self.is_closed = True


def pack(content: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo("packages.txt")
        entry.size, entry.type = len(content), kind
        tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("size", [0, 5, MIB])
def test_a_small_file_is_read(size: int) -> None:
    assert read_small_file(Engine(iter([pack(b"x" * size)])), "c", "/packages.txt") == b"x" * size


def test_what_is_too_large_is_not_known_and_not_read_to_its_end() -> None:
    endless = Engine(chain([pack(b"")[:512]], repeat(bytes(1 << 16))))
    assert read_small_file(endless, "c", "/packages.txt") is None
    assert endless.is_closed
    assert read_small_file(Engine(iter([pack(b"x" * (MIB + 1))])), "c", "/packages.txt") is None


def test_a_folder_is_not_read_as_a_file() -> None:
    assert read_small_file(Engine(iter([pack(b"", tarfile.DIRTYPE)])), "c", "/packages.txt") is None
