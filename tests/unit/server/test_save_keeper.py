"""What the server notes of saved outputs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.data_stores.save_notes import SaveNote, SaveNotes
from riseml.errors import RisemlError
from riseml.model import World
from riseml.server.pool.save_keeper import SaveKeeper
from riseml.spec.config.types import SaveSection
from riseml.states import State
from tests.unit.control.simulation import START, make_experiment, make_plan
from tests.unit.server.test_data_keeper import make_keeper

RUNNING = make_experiment(1, replace(make_plan("master"), save=SaveSection("s3://runs")), state=State.RUNNING)
ENDED = replace(RUNNING, state=State.FINISHED)


def test_a_last_copy_that_a_user_gave_up_stays_given_up_when_the_server_starts_again(tmp_path: Path) -> None:
    _, hosts = make_keeper(tmp_path)
    keeper, world = SaveKeeper("5e17e4", hosts), World((ENDED,))
    under_way = keeper.read_note(ENDED)  # of a copy that ends after the user has given it up
    keeper.give_up(RUNNING)
    assert keeper.find_saves(world)[1].given_up == 0
    keeper.give_up(ENDED)
    keeper.notes.write(1, replace(under_way, trouble="the store does not answer"))
    later = SaveKeeper("5e17e4", hosts)
    assert (later.find_saves(world)[1].given_up, later.read_note(ENDED).trouble) == (1, "the store does not answer")


def test_what_arrived_of_a_closed_experiment_is_forgotten(tmp_path: Path) -> None:
    _, hosts = make_keeper(tmp_path)
    keeper = SaveKeeper("5e17e4", hosts)
    keeper._moved |= {1: START, 2: START}
    assert keeper.find_saves(World((RUNNING,)))[1].moved_at == START
    assert keeper._moved == {1: START}


def test_a_server_that_cannot_note_it_says_so(tmp_path: Path) -> None:
    _, hosts = make_keeper(tmp_path)
    (tmp_path / "saves").write_text("no folder")
    with pytest.raises(RisemlError, match="saves cannot be written: File exists"):
        SaveKeeper("5e17e4", hosts).give_up(ENDED)


def test_a_failed_copy_is_noted_with_what_to_do(tmp_path: Path) -> None:
    _, hosts = make_keeper(tmp_path)
    keeper = SaveKeeper("5e17e4", hosts)
    with pytest.raises(RisemlError) as raised:
        keeper.save_output(ENDED, None, 1)
    assert raised.value.hint
    assert keeper.read_note(ENDED).trouble == f"{raised.value.message} ({raised.value.hint})"


def test_a_note_of_an_older_server_is_read(tmp_path: Path) -> None:
    SaveNotes(tmp_path / "saves").write(1, SaveNote("s3://runs/x"))
    path = tmp_path / "saves" / "1.json"
    held = json.loads(path.read_text())
    del held["given_up"]
    path.write_text(json.dumps(held))
    assert SaveNotes(tmp_path / "saves").read(1) == SaveNote("s3://runs/x")
