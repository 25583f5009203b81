"""Notes about saved outputs: one file for each experiment, below one folder of the server's home.

Each note is written atomically. What a note lacks is in the manifest in the store.
"""

from __future__ import annotations

import json
import threading
from dataclasses import astuple, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from riseml.base.record_files import RecordFiles
from riseml.base.records import dataclass
from riseml.data_stores.save_manifest import SavedFile


@dataclass(frozen=True, slots=True)
class RestoreNote:
    """The files with which an attempt began."""

    attempt: int
    files: int  # that came from the store
    size: int  # bytes of them
    kept: int  # files that were there already  # names: of the API


@dataclass(frozen=True, slots=True)
class SaveNote:
    """What is known of one output."""

    place: str = ""  # its address in the store; empty: nothing was written yet
    named: tuple[SavedFile, ...] = ()  # files that the last manifest names
    loose: tuple[SavedFile, ...] = ()  # files in the store that no manifest names yet
    missing: tuple[str, ...] = ()  # paths whose present content was not there when the last try ended
    is_swept: bool = True  # False: the store may still hold files aside that no manifest names
    left_out: tuple[tuple[str, str], ...] = ()  # paths that the last copy left out, and why
    saved_at: datetime | None = None  # when the last complete copy ended; None: there is none
    last: int = 0  # the attempt whose end the last copy came after
    trouble: str = ""  # why the last try failed, and what to do; empty: it did not
    hosts: tuple[str, ...] = ()  # that have what the present attempt writes
    attempt: int = 0  # the attempt for which the output is filled; 0: none
    filling: int = 0  # the attempt for which the output is being filled, perhaps by a server that died; 0: none
    restored: RestoreNote | None = None  # what that attempt began with; None: the first one
    given_up: int = 0  # the attempt whose last copy a user gave up; 0: none
    inherited: tuple[str, ...] = ()  # hosts on which the output has the files of its parent


class SaveNotes:
    """The notes of a server. Several threads use it at the same time."""

    def __init__(self, folder: Path) -> None:
        self.files = RecordFiles(folder)
        self._lock = threading.Lock()
        self._writing = threading.Lock()  # a copy and a user may write the note of one experiment at the same time
        self._notes: dict[int, SaveNote] = {}  # notes of open experiments

    def read(self, experiment: int) -> SaveNote:
        """Return the note about an output."""
        with self._lock:
            cached = self._notes.get(experiment)
        if cached is not None:
            return cached
        try:
            note = _parse_note(json.loads(self.files.read_text(experiment)))
        except (OSError, ValueError, KeyError, TypeError):  # there is no note, or a crash of the machine truncated it
            note = SaveNote()
        with self._lock:
            return self._notes.setdefault(experiment, note)

    def write(self, experiment: int, note: SaveNote) -> None:
        """Replace the note about an output. If a user gave a copy up meanwhile, it stays given up.

        Raises:
            OSError: the disk is full, or the folder cannot be written.
        """
        with self._writing:
            given_up = max(note.given_up, self.read(experiment).given_up)
            self._write(experiment, replace(note, given_up=given_up))

    def give_up(self, experiment: int, attempt: int) -> None:
        """Note that a user gave up the last copy of an attempt, for the servers after this one, too.

        Raises:
            OSError: the disk is full, or the folder cannot be written.
        """
        with self._writing:
            self._write(experiment, replace(self.read(experiment), given_up=attempt))

    def forget_except(self, open_ids: frozenset[int]) -> None:
        """Drop the notes of all other experiments from memory; they stay on the disk."""
        with self._lock:
            for experiment in [identity for identity in self._notes if identity not in open_ids]:
                del self._notes[experiment]

    def _write(self, experiment: int, note: SaveNote) -> None:
        self.files.write_text(experiment, json.dumps(_show_note(note)))
        with self._lock:
            self._notes[experiment] = note


def _show_note(note: SaveNote) -> dict[str, Any]:
    return {
        "place": note.place,
        "named": [astuple(file) for file in note.named],
        "loose": [astuple(file) for file in note.loose],
        "missing": note.missing,
        "is_swept": note.is_swept,
        "left_out": note.left_out,
        "saved_at": None if note.saved_at is None else note.saved_at.isoformat(),
        "last": note.last,
        "trouble": note.trouble,
        "hosts": note.hosts,
        "attempt": note.attempt,
        "filling": note.filling,
        "restored": None if note.restored is None else astuple(note.restored),
        "given_up": note.given_up,
        "inherited": note.inherited,
    }


def _parse_note(document: dict[str, Any]) -> SaveNote:
    return SaveNote(
        document["place"],
        tuple(SavedFile(*row) for row in document["named"]),
        tuple(SavedFile(*row) for row in document["loose"]),
        tuple(document["missing"]),
        document["is_swept"],
        tuple((path, why) for path, why in document["left_out"]),
        None if document["saved_at"] is None else datetime.fromisoformat(document["saved_at"]),
        document["last"],
        document["trouble"],
        tuple(document["hosts"]),
        document["attempt"],
        document["filling"],
        None if document["restored"] is None else RestoreNote(*document["restored"]),
        document.get("given_up", 0),  # older servers wrote none
        tuple(document.get("inherited", ())),
    )
