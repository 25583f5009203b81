"""Capsules as the server last wrote them, one file for each experiment. Jobs cannot change these files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from riseml import wire
from riseml.base.faultpoints import Point, reach
from riseml.base.record_files import RecordFiles


class CapsuleStore:
    """The capsules below one folder. A capsule is stored completely or not at all.

    Args:
        folder: is created when it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.files = RecordFiles(folder)

    def load_capsule(self, experiment: int) -> wire.Capsule | None:
        """Return the capsule of an experiment, by its key in the store; None: there is none that can be read."""
        try:
            return cast("wire.Capsule", json.loads(self.files.read_text(experiment)))
        except (OSError, ValueError):
            return None

    def save_capsule(self, experiment: int, text: str) -> None:
        """Replace the capsule of an experiment.

        Raises:
            OSError: the disk is full, or the folder cannot be written.
        """
        self.files.write_text(experiment, text, before_named=lambda: reach(Point.CAPSULE_WRITTEN))
