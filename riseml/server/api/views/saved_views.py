"""Saved outputs in the shapes of the HTTP API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from riseml import wire
from riseml.base.states import TERMINAL
from riseml.control.saving import find_attempt
from riseml.data_stores.save_manifest import measure_files
from riseml.data_stores.save_notes import SaveNote
from riseml.model import Experiment
from riseml.planning.launch import output_folder
from riseml.server.api.views.record_views import show_time
from riseml.server.data.output_saver import OutputSaver, SaveProgress


def show_saved_summary(experiment: Experiment, saver: OutputSaver) -> wire.SavedSummary | None:
    """Return how far the output of an experiment is saved; None: its riseml.yml saves nothing."""
    if experiment.plan.policy.save is None:
        return None
    note = saver.read_note(experiment)
    progress = saver.read_progress(experiment)
    begun = note.restored
    return {
        "place": note.place or f"{experiment.plan.policy.save.to}/{output_folder(experiment)}",
        "state": _find_state(experiment, note, progress),
        "saved_at": show_time(note.saved_at),
        "files": len(note.named),
        "bytes": measure_files(note.named),
        "missing": len(note.missing),
        "trouble": note.trouble,
        "done": 0 if progress is None else progress.copied,
        "total": 0 if progress is None else progress.total,
        "restored": None
        if begun is None
        else {"attempt": begun.attempt, "files": begun.files, "bytes": begun.size, "kept": begun.kept},
    }


def show_saved(experiment: Experiment, name: str, saver: OutputSaver, summary: wire.SavedSummary) -> wire.SavedView:
    """Return what is saved of an output, file by file. `name`: of the experiment for the user of the request."""
    note = saver.read_note(experiment)
    return {
        **summary,
        "id": name,
        "manifest": [
            {
                "path": file.path,
                "size": file.size,
                "sha256": file.sha256,
                "changed": show_time(datetime.fromtimestamp(file.changed / 1e9, UTC)) or "",
                "url": f"{summary['place']}/{file.key}",
            }
            for file in note.named
        ],
        "missing_paths": list(note.missing),
        "left_out": [{"path": path, "why": why} for path, why in note.left_out],
    }


def _find_state(
    experiment: Experiment, note: SaveNote, progress: SaveProgress | None
) -> Literal["waiting", "saving", "saved", "incomplete", "nothing"]:
    if progress is not None:
        return "saving"
    if experiment.state not in TERMINAL:
        return "waiting"
    if experiment.started_at is None:
        return "nothing"
    if note.last >= find_attempt(experiment):
        return "saved"
    return "incomplete" if experiment.closed else "saving"
