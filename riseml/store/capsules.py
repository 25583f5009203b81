"""Capsules as the server last wrote them, one file for each experiment. Nothing that a job writes changes them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import cast

from riseml import wire


class CapsuleStore:
    """The capsules below one folder. A capsule is there whole or not at all.

    Args:
        folder: is created when it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load_capsule(self, experiment: int) -> wire.Capsule | None:
        """Return the capsule of an experiment, by its key in the store; None: there is none that can be read."""
        try:
            return cast("wire.Capsule", json.loads(self._path(experiment).read_text("utf-8")))
        except (OSError, ValueError):
            return None

    def save_capsule(self, experiment: int, text: str) -> None:
        """Replace the capsule of an experiment.

        Raises:
            OSError: the disk is full, or the folder cannot be written.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(experiment)
        fresh = path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(text)
        os.replace(fresh, path)

    def _path(self, experiment: int) -> Path:
        return self._folder / f"{experiment}.json"
