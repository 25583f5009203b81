"""A store that is locked, full, truncated or away: one clear error, no acknowledged loss."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from riseml.base.errors import StoreError
from riseml.store.database import Database
from riseml.store.database_errors import read_address, show_address
from riseml.store.experiments import ExperimentStore
from riseml.store.schema import facts
from tests.unit.store.submissions import submit

PAGE = 4096  # bytes; SQLite's default


@contextmanager
def locked(database: Database) -> Iterator[None]:
    """Another process is in the middle of a write."""
    with database.write_transaction():
        yield


def test_a_writer_waits_for_a_locked_store_then_gives_up(store: str) -> None:
    patient, other = Database(store), Database(store, lock_timeout=0.1)
    with (
        locked(patient),
        pytest.raises(StoreError, match=r"is locked by another process") as raised,
    ):
        submit(ExperimentStore(other))
    assert "try again" in (raised.value.hint or "")
    assert submit(ExperimentStore(other)).number == 1, "writers go on once the lock is released"
    patient.close()
    other.close()


def test_a_locked_store_can_be_read(store: str) -> None:
    patient, other = Database(store), Database(store, lock_timeout=0.1)
    made = submit(ExperimentStore(patient))
    with locked(patient):
        assert ExperimentStore(other).load_world().experiments == (made,)
    patient.close()
    other.close()


def test_a_reader_sees_one_state(store: str) -> None:
    reading, writing = Database(store), Database(store)
    count = sa.select(sa.func.count()).select_from(facts)
    with reading.read_transaction() as connection:
        before = connection.execute(count).scalar()
        ExperimentStore(writing).load_server_id()
        assert connection.execute(count).scalar() == before
    with reading.read_transaction() as connection:
        assert connection.execute(count).scalar() != before
    reading.close()
    writing.close()


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    experiments = ExperimentStore(database)
    acknowledged = [submit(experiments).id]
    size = (tmp_path / "riseml.db").stat().st_size // PAGE + 40
    with database.read_transaction() as connection:  # this thread's one connection then fails as on a full disk
        connection.exec_driver_sql(f"PRAGMA max_page_count = {size}")
    with pytest.raises(StoreError, match=r"riseml\.db cannot grow: its disk is full") as raised:
        acknowledged += [submit(experiments).id for _ in range(200)]
    assert str(tmp_path) in (raised.value.hint or "")
    found = {experiment.id for experiment in experiments.load_world().experiments}
    assert found >= set(acknowledged)
    with database.read_transaction() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    assert submit(experiments).id not in found, "submissions go on once there is space"
    database.close()


@pytest.mark.parametrize("share", [0.9, 0.5, 0.02])
def test_a_truncated_file_is_refused_and_not_changed(tmp_path: Path, share: float) -> None:
    path = tmp_path / "riseml.db"
    database = Database(f"sqlite:///{path}")
    for _ in range(50):
        submit(ExperimentStore(database))
    database.close()
    os.truncate(path, int(path.stat().st_size * share))
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"{path} is damaged") as raised:
        Database(f"sqlite:///{path}")
    assert raised.value.hint == "restore it from a backup, or move it away"
    assert path.read_bytes() == before


def test_the_error_names_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"gone/riseml\.db cannot be opened") as raised:
        Database(f"sqlite:///{tmp_path}/gone/riseml.db")
    assert f"{tmp_path}/gone" in (raised.value.hint or "")


def test_a_wrong_query_is_not_an_error_of_the_store(database: Database) -> None:
    with pytest.raises(IntegrityError), database.write_transaction() as connection:
        for _ in range(2):
            connection.execute(facts.insert().values(name="twice", value="x"))


def test_the_error_names_a_postgresql_that_is_away_without_its_password() -> None:
    with pytest.raises(StoreError, match=r"paul:\*\*\*@127\.0\.0\.1:1/toast does not answer") as raised:
        Database("postgresql+psycopg://paul:secret@127.0.0.1:1/toast")
    assert "secret" not in f"{raised.value.message} {raised.value.hint}"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://ann:SECRET@host/x",
        "postgresql+psycopg://host/x?password=SECRET&user=ann",
        "postgresql+psycopg://host/x?sslpassword=SECRET",
    ],
)
def test_no_address_of_a_store_shows_its_password(address: str) -> None:
    shown = show_address(read_address(address))
    assert "SECRET" not in shown
    assert "host/x" in shown


@pytest.mark.parametrize("address", ["postgresql+psycopg://ann:SECRET@host:abc/x", "SECRET"])
def test_an_address_that_cannot_be_read_is_not_shown(address: str) -> None:
    with pytest.raises(StoreError, match="cannot be read") as raised:
        Database(address)
    assert "SECRET" not in str(raised.value)
