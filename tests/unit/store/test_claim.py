"""The claim of a server on PostgreSQL: two servers never write, whatever becomes of their sessions."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from riseml.base.errors import StoreError
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.store.submissions import submit


def test_a_second_server_of_a_postgresql_is_refused(postgres_store: str) -> None:
    first = Database(postgres_store, "process 7 on one", lock_timeout=0.3)
    with pytest.raises(StoreError, match="is used by process 7 on one"):
        Database(postgres_store, "process 8 on two", lock_timeout=0.3)
    first.close()
    second = Database(postgres_store, "process 8 on two", lock_timeout=DEADLINE)  # PostgreSQL notices the end late
    second.close()


def test_a_server_that_starts_at_once_waits_for_the_one_that_ends(postgres_store: str) -> None:
    first = Database(postgres_store, "one", lock_timeout=0.3)
    with ThreadPoolExecutor(1) as hands:
        coming = hands.submit(Database, postgres_store, "two", float(DEADLINE))
        threading.Timer(0.3, first.close).start()
        coming.result(DEADLINE).close()


def end_sessions(postgres: sa.Engine, those: str) -> None:
    """End these sessions, and wait until they have ended; PostgreSQL does it after the call."""
    with postgres.connect() as connection:
        connection.exec_driver_sql(f"SELECT pg_terminate_backend(pid) FROM {those}")
        count = f"SELECT count(*) FROM {those}"
        wait_for("the sessions have ended", lambda: connection.exec_driver_sql(count).scalar_one() == 0, DEADLINE)


def test_a_server_that_lost_its_claim_writes_nothing(postgres_store: str, postgres: sa.Engine) -> None:
    old = Database(postgres_store, "the old one", lock_timeout=0.3)
    experiments = ExperimentStore(old)
    claim = (
        f"pg_locks JOIN pg_database ON database = oid WHERE locktype = 'advisory' AND datname = '{old.url.database}'"
    )
    end_sessions(postgres, claim)
    new = Database(postgres_store, "the new one", lock_timeout=0.3)
    with pytest.raises(StoreError, match="is used by the new one"):
        submit(experiments)
    with pytest.raises(StoreError, match="is used by the new one"):
        old.confirm_sole_server()
    submit(ExperimentStore(new))
    new.close()
    old.confirm_sole_server()  # no server has the lock now
    assert submit(experiments).number == 2
    old.close()


def test_a_claim_survives_the_end_of_its_session(postgres_store: str, postgres: sa.Engine) -> None:
    database = Database(postgres_store, "one", lock_timeout=0.3)
    end_sessions(postgres, f"pg_stat_activity WHERE datname = '{database.url.database}'")
    assert submit(ExperimentStore(database)).number == 1, "dead connections are replaced"
    database.confirm_sole_server()
    with pytest.raises(StoreError, match="is used by one"):
        Database(postgres_store, "two", lock_timeout=0.3)
    database.close()
