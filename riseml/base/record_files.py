"""Folders of the server's home with one small file for each experiment: `12.json` is of the experiment with the id 12.

A file is written under another name, and renamed in one step. Files that a killed server left half written are listed,
too.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from riseml.base.errors import StoreError
from riseml.base.folders import make_private
from riseml.base.records import dataclass


@dataclass(frozen=True, slots=True)
class HeldRecord:
    """One file of such a folder."""

    name: str
    experiment: int | None  # id in the store; None: a server was killed while it wrote the file
    size: int  # bytes
    changed: float  # seconds since the epoch


class RecordFiles:
    """The files below one folder, which is made with the first of them. Several threads use it at the same time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_text(self, experiment: int) -> str:
        """Return the file of an experiment.

        Raises:
            OSError: there is none, or it cannot be read.
        """
        return self._path(experiment).read_text("utf-8")

    def write_text(self, experiment: int, text: str, before_named: Callable[[], None] = lambda: None) -> None:
        """Replace the file of an experiment; it is on the disk when it gets its name.

        Args:
            experiment: its id.
            text: the content.
            before_named: is called when the content is on the disk.

        Raises:
            OSError: the disk is full, or the folder cannot be written. The file is what it was.
        """
        make_private(self._folder)
        path = self._path(experiment)
        fresh = path.with_suffix(f".{uuid.uuid4().hex[:8]}.new")  # several threads write for one experiment
        try:
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            before_named()
            os.replace(fresh, path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise

    def list_records(self) -> Iterator[HeldRecord]:
        """Yield all files, including those that a killed server left half written."""
        for path in sorted(self._folder.glob("[0-9]*.*")):
            whole = path.suffix == ".json" and path.stem.isdecimal()
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            yield HeldRecord(path.name, int(path.stem) if whole else None, status.st_size, status.st_mtime)

    def remove_record(self, name: str) -> None:
        """Remove one file that `list_records` named, if it is there.

        Raises:
            StoreError: it cannot be removed.
        """
        try:
            (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self._folder / name} cannot be removed: {error.strerror}") from error

    def _path(self, experiment: int) -> Path:
        return self._folder / f"{experiment}.json"
