"""The last diagnosis of each experiment, one file for each. Jobs cannot change these files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from riseml import wire
from riseml.base.record_files import RecordFiles


class DiagnosisStore:
    """The diagnoses below one folder.

    Args:
        folder: is created when it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.files = RecordFiles(folder)

    def load_diagnosis(self, experiment: int) -> wire.DiagnosisView | None:
        """Return the last diagnosis of an experiment, by its key in the store; None: there is none that can be read."""
        try:
            return cast("wire.DiagnosisView", json.loads(self.files.read_text(experiment)))
        except (OSError, ValueError):
            return None

    def save_diagnosis(self, experiment: int, diagnosis: wire.DiagnosisView) -> None:
        """Replace the diagnosis of an experiment.

        Raises:
            OSError: the disk is full, or the folder cannot be written.
        """
        self.files.write_text(experiment, json.dumps(diagnosis))
