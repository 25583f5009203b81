"""Notes about saved outputs, which outlive the server."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from riseml.data_stores.save_manifest import SavedFile
from riseml.data_stores.save_notes import RestoreNote, SaveNote, SaveNotes

NOTE = SaveNote(
    "s3://runs/paul/toaster/4",
    named=(SavedFile("model", 3, 10**18, executable=False, sha256="0" * 64, key="model", tag="t"),),
    missing=("log",),
    left_out=(("pipe", "it is not a regular file"),),
    saved_at=datetime(2026, 11, 23, 3, tzinfo=UTC),
    last=1,
    trouble="the store answers 503",
    hosts=("h1", "h2"),
    attempt=2,
    restored=RestoreNote(2, files=1, size=3, kept=0),
)


def test_a_note_outlives_the_server(tmp_path: Path) -> None:
    SaveNotes(tmp_path / "saves").write(1, NOTE)
    assert SaveNotes(tmp_path / "saves").read(1) == NOTE
    assert SaveNotes(tmp_path / "saves").read(2) == SaveNote()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"place": 1, "named": 2}'])
def test_a_note_that_a_crash_cut_off_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "1.json").write_text(text)
    assert SaveNotes(tmp_path).read(1) == SaveNote()


def test_a_copy_that_ends_later_does_not_take_back_what_a_user_gave_up(tmp_path: Path) -> None:
    notes = SaveNotes(tmp_path)
    begun = notes.read(1)
    notes.give_up(1, 3)
    notes.write(1, replace(begun, place="s3://runs/x"))
    for same in (notes, SaveNotes(tmp_path)):
        assert same.read(1) == SaveNote("s3://runs/x", given_up=3)


def test_a_note_of_a_closed_experiment_stays_on_the_disk(tmp_path: Path) -> None:
    notes = SaveNotes(tmp_path)
    for experiment in (1, 2):
        notes.write(experiment, NOTE)
    notes.forget_except(frozenset({2}))
    (tmp_path / "2.json").unlink()
    assert [notes.read(experiment) for experiment in (1, 2)] == [NOTE, NOTE]


def test_a_note_of_an_older_server_is_read(tmp_path: Path) -> None:
    SaveNotes(tmp_path / "saves").write(1, SaveNote("s3://runs/x"))
    path = tmp_path / "saves" / "1.json"
    held = json.loads(path.read_text())
    del held["given_up"]
    path.write_text(json.dumps(held))
    assert SaveNotes(tmp_path / "saves").read(1) == SaveNote("s3://runs/x")
