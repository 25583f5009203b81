"""A store that is locked, full, cut off, taken or away: one clear sentence, nothing lost that was acknowledged."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from riseml.errors import StoreError
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.schema import facts
from tests.support.waiting import wait_for
from tests.unit.store.test_database import submit

PAGE = 4096  # bytes; SQLite's default


@contextmanager
def locked(database: Database) -> Iterator[None]:
    """Somebody else is in the middle of a write."""
    with database.write_transaction():
        yield


def test_a_locked_store_is_waited_for_then_refused(store: str) -> None:
    patient, other = Database(store), Database(store, patience=0.1)
    with (
        locked(patient),
        pytest.raises(StoreError, match=r"is locked by (another process|somebody else)") as raised,
    ):
        submit(ExperimentStore(other))
    assert "try again" in (raised.value.hint or "")
    assert submit(ExperimentStore(other)).number == 1, "it goes on once it is free"
    patient.close()
    other.close()


def test_a_locked_store_can_be_read(store: str) -> None:
    patient, other = Database(store), Database(store, patience=0.1)
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


def test_a_full_disk_costs_only_what_was_not_acknowledged(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    experiments = ExperimentStore(database)
    acknowledged = [submit(experiments).id]
    size = (tmp_path / "riseml.db").stat().st_size // PAGE + 40
    with (
        database.read_transaction() as connection
    ):  # of this thread's one connection: what a file system without room says
        connection.exec_driver_sql(f"PRAGMA max_page_count = {size}")
    with pytest.raises(StoreError, match=r"riseml\.db cannot grow: its disk is full") as raised:
        acknowledged += [submit(experiments).id for _ in range(200)]
    assert str(tmp_path) in (raised.value.hint or "")
    found = {experiment.id for experiment in experiments.load_world().experiments}
    assert found >= set(acknowledged)
    with database.read_transaction() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    assert submit(experiments).id not in found, "it goes on once there is room"
    database.close()


@pytest.mark.parametrize("share", [0.9, 0.5, 0.02])
def test_a_file_that_was_cut_off_is_refused_and_left_alone(tmp_path: Path, share: float) -> None:
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


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"gone/riseml\.db cannot be opened") as raised:
        Database(f"sqlite:///{tmp_path}/gone/riseml.db")
    assert f"{tmp_path}/gone" in (raised.value.hint or "")


def test_a_mistake_of_ours_is_no_trouble_of_the_store(database: Database) -> None:
    with pytest.raises(IntegrityError), database.write_transaction() as connection:
        for _ in range(2):
            connection.execute(facts.insert().values(name="twice", value="x"))


def test_submits_at_the_same_time_get_numbers_of_their_own(store: str) -> None:
    databases = [Database(store) for _ in range(4)]
    with ThreadPoolExecutor(8) as hands:
        made = list(hands.map(lambda turn: submit(ExperimentStore(databases[turn % 4])).number, range(24)))
    assert sorted(made) == list(range(1, 25))
    for database in databases:
        database.close()


def test_a_postgresql_that_is_away_is_named_without_its_password() -> None:
    with pytest.raises(StoreError, match=r"paul:\*\*\*@127\.0\.0\.1:1/toast does not answer") as raised:
        Database("postgresql+psycopg://paul:secret@127.0.0.1:1/toast")
    assert "secret" not in f"{raised.value.message} {raised.value.hint}"


def test_a_postgresql_has_one_server(postgres_store: str) -> None:
    first = Database(postgres_store, "process 7 on one", patience=0.3)
    with pytest.raises(StoreError, match="is used by process 7 on one"):
        Database(postgres_store, "process 8 on two", patience=0.3)
    first.close()
    second = Database(postgres_store, "process 8 on two", patience=0.3)
    second.close()


def test_a_server_that_follows_at_once_waits_for_the_one_that_ends(postgres_store: str) -> None:
    first = Database(postgres_store, "one", patience=0.3)
    with ThreadPoolExecutor(1) as hands:
        coming = hands.submit(Database, postgres_store, "two", 60.0)
        threading.Timer(0.3, first.close).start()
        coming.result(60).close()


def end_sessions(postgres: sa.Engine, those: str) -> None:
    """End these sessions, and wait until they have ended: the server is asked for it, and does it later."""
    with postgres.connect() as connection:
        connection.exec_driver_sql(f"SELECT pg_terminate_backend(pid) FROM {those}")
        count = f"SELECT count(*) FROM {those}"
        wait_for("they have ended", lambda: connection.exec_driver_sql(count).scalar_one() == 0, 60.0)


def test_a_server_that_lost_its_claim_writes_nothing(postgres_store: str, postgres: sa.Engine) -> None:
    old = Database(postgres_store, "the old one", patience=0.3)
    experiments = ExperimentStore(old)
    claim = (
        f"pg_locks JOIN pg_database ON database = oid WHERE locktype = 'advisory' AND datname = '{old.url.database}'"
    )
    end_sessions(postgres, claim)
    new = Database(postgres_store, "the new one", patience=0.3)
    with pytest.raises(StoreError, match="is used by the new one"):
        submit(experiments)
    with pytest.raises(StoreError, match="is used by the new one"):
        old.confirm_sole_server()
    submit(ExperimentStore(new))
    new.close()
    old.confirm_sole_server()  # nobody has it now
    assert submit(experiments).number == 2
    old.close()


def test_a_claim_survives_the_end_of_its_session(postgres_store: str, postgres: sa.Engine) -> None:
    database = Database(postgres_store, "one", patience=0.3)
    end_sessions(postgres, f"pg_stat_activity WHERE datname = '{database.url.database}'")
    assert submit(ExperimentStore(database)).number == 1, "connections that died are replaced"
    database.confirm_sole_server()
    with pytest.raises(StoreError, match="is used by one"):
        Database(postgres_store, "two", patience=0.3)
    database.close()
