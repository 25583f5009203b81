"""Packs of contents that a client writes for a server on the same machine: the server takes the file itself, so that no
byte travels through a socket. The server reads each pack, and names what is in it."""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

if TYPE_CHECKING:
    from concurrent.futures import Future

_PACK = 1 << 25  # bytes of a pack, before the next one begins
_HANDLED = 2  # packs that the server reads and flushes to the disk at the same time
_MOST_WAITING = 2  # packs that the server has not taken yet


class PackTaker(Protocol):
    """A client of the server that takes packs."""

    def hand_over_pack(self, name: str) -> None:
        """Let the server take the pack with this name; threads call it."""

    def close(self) -> None:
        """End the requests of all threads."""


def hand_over_packs(records: Iterable[memoryview], folder: Path, taker: PackTaker) -> None:
    """Write records of contents to packs; the server takes each one while the next one is written.

    Packs that the server did not take are removed. An error, and the user's Ctrl-C, end a request that the server does
    not answer.

    Args:
        records: of contents (see `files.archives.pieces`), whole ones.
        folder: in which the server looks for packs.
        taker: asks the server to take packs.

    Raises:
        OSError: a pack cannot be written.
        RisemlError: the server does not take a pack.
    """
    from concurrent.futures import ThreadPoolExecutor

    with _removed_packs(folder) as names, ThreadPoolExecutor(_HANDLED, "packs") as pool:
        waiting: deque[Future[None]] = deque()
        try:
            for name in _write_packs(records, folder, names):
                waiting.append(pool.submit(taker.hand_over_pack, name))
                while len(waiting) > _MOST_WAITING:
                    waiting.popleft().result()
            while waiting:
                waiting.popleft().result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            taker.close()
            raise


def _write_packs(records: Iterable[memoryview], folder: Path, names: list[str]) -> Iterator[str]:
    """Write packs, and yield the name of each one that is complete; `names` gets a name before its file is there."""
    parts = iter(records)
    for first in parts:
        names.append(secrets.token_hex(16))
        with _create_file(folder / names[-1]) as file:
            size = _write_whole(file, first)
            while size < _PACK and (part := next(parts, None)) is not None:
                size += _write_whole(file, part)
        yield names[-1]


def _create_file(path: Path) -> BinaryIO:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    return open(handle, "wb", buffering=0)


def _write_whole(file: BinaryIO, data: memoryview) -> int:
    """Write all bytes, and return their number."""
    left = data
    while left:
        left = left[file.write(left) :]
    return len(data)


@contextmanager
def _removed_packs(folder: Path) -> Iterator[list[str]]:
    """Yield a list for the names of packs. At the end, remove the packs that are still in the folder."""
    names: list[str] = []
    try:
        yield names
    finally:
        for name in names:
            with suppress(OSError):  # the server removes it later; an error here would take the place of a Ctrl-C
                (folder / name).unlink(missing_ok=True)
