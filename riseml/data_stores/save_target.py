"""A folder of an object store to which the server writes: whole objects, or none.

target = open_target(parse_data_url("s3://runs/paul/mnist/4"), store)
target.write("model.npy", 5, iter([b"bytes"]))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import DataUrl


class SaveTarget(Protocol):
    """One folder. Several threads use it at the same time.

    Raises:
        Away: every method, when another try may help.
        EngineError: every method, when the store refuses (permanent).
    """

    def read(self, key: str, start: int, stop: int) -> bytes | None:
        """Return a range of an object, or the part of the range that exists; None: there is no such object."""

    def write(self, key: str, size: int, pieces: Iterator[bytes]) -> None:
        """Write an object of `size` bytes. An error of `pieces` is raised again, and then nothing was written."""

    def copy(self, key: str, target: str) -> None:
        """Write an object that has the content of another one."""

    def list_keys(self, folder: str) -> list[str]:
        """Return the objects below a folder."""

    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects; ignore missing ones."""


def open_target(url: DataUrl, store: Store) -> SaveTarget:
    """Return the folder at an address of an object store; no request is sent yet."""
    from riseml.data_stores.object_target import ObjectTarget  # imports obstore: only where something is saved

    return ObjectTarget(url, store)
