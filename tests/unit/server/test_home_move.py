"""`riseml server move` makes a copy the owner of its store, and retires the home that was."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import NotFound, Refused, StoreError
from riseml.base.home_location import find_location
from riseml.base.settings import Settings
from riseml.server.home_lock import HomeLock
from riseml.server.home_move import move_home
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.home_record import OwnHome, load_home_record


def make_settings(home: Path, store: str | None = None) -> Settings:
    home.mkdir(exist_ok=True)
    return Settings(home=home, output=home / "output", data=home / "data", store=store)


def start(settings: Settings) -> None:
    """Open the store as a server of the home does, and end."""
    with closing(Database(settings.database, "a server", home=OwnHome(find_location(settings.home)))) as database:
        (settings.home / "server.id").write_text(ExperimentStore(database).load_server_id())


@pytest.fixture
def home(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path / "home")
    start(made)
    return made


@pytest.fixture
def copy(home: Settings, tmp_path: Path) -> Settings:
    shutil.copytree(home.home, tmp_path / "copy")
    return make_settings(tmp_path / "copy")


def test_a_copy_that_was_moved_is_the_owner_and_the_original_is_the_copy(home: Settings, copy: Settings) -> None:
    (copy.home / "environments" / "made").mkdir(parents=True)
    moved = move_home(copy)
    assert (moved.former, moved.retired, moved.environments) == (find_location(home.home), True, True)
    assert not (copy.home / "environments").exists(), "programs in it name paths of the original"
    start(copy)
    with pytest.raises(StoreError, match=f"{home.home} is a copy: its experiments belong to the home {copy.home}"):
        start(home)
    assert move_home(home).retired, "and back again"
    start(home)
    with pytest.raises(StoreError, match="is a copy"):
        start(copy)


def test_a_home_that_is_gone_or_another_one_by_now_is_not_asked(home: Settings, copy: Settings) -> None:
    shutil.rmtree(home.home)
    start(make_settings(home.home))
    assert not move_home(copy).retired
    start(home)
    start(copy)


def test_the_home_of_a_store_has_nothing_to_move(home: Settings, tmp_path: Path) -> None:
    assert move_home(home).former is None
    with pytest.raises(NotFound, match="has no store"):
        move_home(make_settings(tmp_path / "empty"))


def test_a_home_whose_server_runs_is_not_retired(home: Settings, copy: Settings) -> None:
    with HomeLock(home.home, home.lock) as lock:
        lock.take()
        with pytest.raises(Refused, match=f"is the server of {home.home} already"):
            move_home(copy)
    with pytest.raises(StoreError, match="is a copy"):
        start(copy)


@pytest.mark.postgres
def test_of_two_homes_on_one_database_one_is_the_owner(tmp_path: Path, postgres_store: str) -> None:
    home, other = (make_settings(tmp_path / name, postgres_store) for name in ("home", "other"))
    start(home)
    with pytest.raises(StoreError, match=f"{other.home} is a copy: its experiments belong to the home {home.home}"):
        start(other)
    assert move_home(other).retired
    start(other)
    with pytest.raises(StoreError, match=f"its experiments belong to the home {other.home}"):
        start(home)


def test_a_home_on_another_machine_is_named_and_not_looked_for(home: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.base.home_location._read_machine", lambda: "this")  # a machine may have no id
    here = find_location(home.home)
    with closing(Database(home.database)) as database, database.write_transaction() as connection:
        elsewhere = replace(here, machine="another", host="node7")
        connection.exec_driver_sql("UPDATE facts SET value = ? WHERE name = 'home'", (elsewhere.write_text(),))
    with pytest.raises(StoreError, match=f"belong to the home {here.path} on the machine node7"):
        start(home)
    moved = move_home(home)
    assert (moved.former, moved.retired, moved.environments) == (elsewhere, False, False)
    start(home)
    with closing(Database(home.database)) as database, database.read_transaction() as connection:
        assert load_home_record(connection) == here
