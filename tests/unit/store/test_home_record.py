"""A store belongs to one home: a copy of the home, or of the store, changes nothing and asks no host."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import StoreError
from riseml.base.home_location import HomeLocation, find_location
from riseml.store.database import Database
from riseml.store.home_record import OwnHome, load_home_record

FORMER = HomeLocation("/gone/home", 7, 40, "machine", ("52:54:00:00:00:01",), "node1")


def open_store(store: str, home: HomeLocation | None) -> HomeLocation | None:
    """Open a store as the server of a home does, and return the home that it names then."""
    with (
        closing(Database(store, "a server", home=None if home is None else OwnHome(home))) as database,
        database.read_transaction() as connection,
    ):
        return load_home_record(connection)


def test_the_first_home_of_a_store_becomes_its_own(store: str) -> None:
    assert open_store(store, None) is None
    assert open_store(store, FORMER) == FORMER
    assert open_store(store, FORMER) == FORMER


def test_a_home_that_had_a_store_takes_no_other_one_without_tables(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE others (x)")
    with pytest.raises(StoreError, match="nothing of riseml, and /gone/home had another one") as refused:
        Database(f"sqlite:///{other}", "a server", home=OwnHome(FORMER, "5d644ab2"))
    assert "/gone/home/server.id" in str(refused.value.hint)
    with closing(sqlite3.connect(other)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("others",)]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"path": "/gone/copy", "inode": 8}, "the home /gone/home of this machine, which is gone"),
        ({"inode": 8}, "another folder, which was at this path before"),
        ({"machine": "other"}, "the home /gone/home on the machine node1"),
        ({"cards": ("52:54:00:00:00:02",)}, "the home /gone/home on the machine node1"),
        ({"path": "/gone/copy", "device": 41}, "the home /gone/home of this machine, which is gone"),
    ],
    ids=["copied", "copied into its place", "another machine", "a clone of the machine", "a snapshot"],
)
def test_a_copy_is_refused_and_the_store_still_names_its_home(
    store: str, change: dict[str, object], where: str
) -> None:
    open_store(store, FORMER)
    copy = replace(FORMER, **change)  # type: ignore[arg-type]  # the fields of one record
    with pytest.raises(StoreError) as refused:
        open_store(store, copy)
    assert refused.value.message == f"RISEML_HOME {copy.path} is a copy: its experiments belong to {where}"
    assert "run `riseml server move` here" in (refused.value.hint or "")
    assert open_store(store, None) == FORMER


@pytest.mark.parametrize(
    "change",
    [
        {"device": 41},
        {"path": "/gone/renamed"},
        {"machine": ""},
        {"cards": ()},
        {"cards": ("52:54:00:00:00:01", "52:54:00:00:00:09"), "host": "renamed"},
    ],
    ids=["after a reboot", "renamed", "without an id", "without cards", "another card"],
)
def test_the_same_folder_is_the_same_home(store: str, change: dict[str, object]) -> None:
    open_store(store, FORMER)
    home = replace(FORMER, **change)  # type: ignore[arg-type]  # the fields of one record
    assert open_store(store, home) == home


def test_a_snapshot_with_the_number_of_the_folder_is_a_copy_while_the_home_is_there(store: str, tmp_path: Path) -> None:
    """The root of each snapshot of btrfs has the same inode, and a file system may get the number of another one."""
    home = replace(find_location(tmp_path), inode=256)
    open_store(store, home)
    with pytest.raises(StoreError, match="which is still there"):
        open_store(store, replace(home, path="/gone/snapshot"))


def _copy_folder(home: Path, copy: Path) -> None:
    shutil.copytree(home, copy)


def _back_up_store(home: Path, copy: Path) -> None:
    copy.mkdir()
    with closing(sqlite3.connect(home / "riseml.db")) as one, closing(sqlite3.connect(copy / "riseml.db")) as other:
        one.backup(other)


@pytest.mark.parametrize("make_copy", [_copy_folder, _back_up_store])
def test_a_copied_folder_and_a_backup_of_the_store_alone_are_copies(
    tmp_path: Path, make_copy: Callable[[Path, Path], None]
) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    home.mkdir()
    open_store(f"sqlite:///{home}/riseml.db", find_location(home))
    make_copy(home, copy)
    with pytest.raises(StoreError, match=f"{copy} is a copy: its experiments belong to the home {home} of this"):
        open_store(f"sqlite:///{copy}/riseml.db", find_location(copy))


@pytest.mark.parametrize(
    ("change", "is_same"),
    [({}, True), ({"inode": 8}, False), ({"path": "/gone/copy"}, False)],
    ids=["the folder", "a copy", "another place"],
)
def test_a_home_that_machines_share_is_known_by_its_inode_and_path(
    store: str, change: dict[str, object], *, is_same: bool
) -> None:
    open_store(store, FORMER)
    there = {"machine": "other", "cards": ("52:54:00:00:00:02",), "device": 50, **change}
    home = replace(FORMER, **there)  # type: ignore[arg-type]  # the fields of one record
    with pytest.raises(StoreError) as raised:
        open_store(store, home)
    assert ("set RISEML_LOCAL for both" in str(raised.value.hint)) == is_same
    with pytest.raises(StoreError) if not is_same else nullcontext():
        Database(store, "a server", home=OwnHome(home, is_shared=True)).close()
    assert open_store(store, None) == (home if is_same else FORMER)
