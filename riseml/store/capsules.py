"""Capsules as the server last wrote them, one file for each experiment. Jobs cannot change these files."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from riseml import wire
from riseml.errors import StoreError
from riseml.faultpoints import Point, reach
from riseml.records import dataclass


@dataclass(frozen=True, slots=True)
class HeldCapsule:
    """One file of the folder."""

    name: str
    experiment: int | None  # key in the store; None: a server was killed while it wrote the file
    size: int  # bytes
    changed: float  # seconds since the epoch


class CapsuleStore:
    """The capsules below one folder. A capsule is stored completely or not at all.

    Args:
        folder: is created when it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load_capsule(self, experiment: int) -> wire.Capsule | None:
        """Return the capsule of an experiment, by its key in the store; None: there is none that can be read."""
        try:
            return cast("wire.Capsule", json.loads(self._capsule_path(experiment).read_text("utf-8")))
        except (OSError, ValueError):
            return None

    def save_capsule(self, experiment: int, text: str) -> None:
        """Replace the capsule of an experiment.

        Raises:
            OSError: the disk is full, or the folder cannot be written.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._capsule_path(experiment)
        # several hosts of one experiment are prepared at the same time
        fresh = path.with_suffix(f".{uuid.uuid4().hex[:8]}.new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(text)
        reach(Point.CAPSULE_WRITTEN)
        os.replace(fresh, path)

    def list_capsules(self) -> Iterator[HeldCapsule]:
        """Yield all capsules, and incomplete files of a server that was killed."""
        for path in sorted(self._folder.glob("[0-9]*.*")):
            whole = path.suffix == ".json" and path.stem.isdecimal()
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            yield HeldCapsule(path.name, int(path.stem) if whole else None, found.st_size, found.st_mtime)

    def remove_file(self, name: str) -> None:
        """Remove one file that `list_capsules` named, if it is there.

        Raises:
            StoreError: it cannot be removed.
        """
        try:
            (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self._folder / name} cannot be removed: {error.strerror}") from error

    def _capsule_path(self, experiment: int) -> Path:
        return self._folder / f"{experiment}.json"
