"""The claim of a server on PostgreSQL: two servers never write, whatever becomes of their sessions."""

from __future__ import annotations

import ast
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

import riseml
from riseml.base.errors import StoreError
from riseml.store.claim import ClaimState, ClaimTerms, read_claim
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.schema import facts
from tests.support.silent_relay import SilentRelay
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.store.submissions import submit

PATIENCE = 1.0  # seconds
LOCK = "boot 7 of the home"


@pytest.fixture
def relay(postgres_store: str) -> Iterator[SilentRelay]:
    """A connection to the database that a test can silence; its path is short."""
    with tempfile.TemporaryDirectory() as folder, SilentRelay(Path(folder) / "r", postgres_store) as relay:
        yield relay


def open_shared(store: str, name: str, lock: str = "", lost: list[str] | None = None) -> Database:
    """Return the database of a server with a standby."""
    losses = [] if lost is None else lost
    terms = ClaimTerms(shared=True, lock=lock, patience=PATIENCE, on_loss=losses.append)
    return Database(store, name, lock_timeout=0.3, terms=terms)


def open_after(store: str, name: str) -> Database:
    """Return the database of a standby as soon as it may take over."""

    def open_once() -> Database | None:
        try:
            return open_shared(store, name)
        except StoreError:
            return None

    return wait_for("the standby takes over", open_once, DEADLINE)


def look(store: str) -> ClaimState:
    with sa.create_engine(store, poolclass=sa.NullPool).connect() as connection:
        state = read_claim(connection)
    assert state is not None
    return state


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


def test_a_standby_takes_over_from_a_server_that_is_cut_off_in_a_transaction(
    postgres_store: str, relay: SilentRelay
) -> None:
    lost: list[str] = []
    old = open_shared(relay.store, "the old one", lost=lost)
    old.check_claim()
    with pytest.raises(StoreError, match="is used by the old one"):
        open_shared(postgres_store, "the new one")
    held = old.engine.connect()
    held.execute(sa.select(facts.c.value).with_for_update())
    relay.fall_silent()
    new = open_after(postgres_store, "the new one")
    assert wait_for("the old one learns of it", lambda: lost, DEADLINE) == [
        "its claim on the store was not renewed in time, and another server may take over"
    ]
    with pytest.raises(StoreError, match="is not renewed"):
        old.check_claim()
    assert new.took_over, "the old one may still have files open"
    state = look(postgres_store)
    assert (state.holder.holder, state.holder.number) == ("the new one", 2)
    new.check_claim()
    assert submit(ExperimentStore(new)).number == 1
    relay.break_connections()
    held.invalidate()
    old.close()
    new.close()


def test_a_server_that_lost_a_shared_claim_never_takes_it_again(postgres_store: str, postgres: sa.Engine) -> None:
    lost: list[str] = []
    old = open_shared(postgres_store, "the old one", lost=lost)
    with sa.create_engine(
        postgres_store, poolclass=sa.NullPool
    ).begin() as connection:  # as if it had been silent for an hour
        connection.execute(facts.update().where(facts.c.name == "lease").values(value="another 7"))
    assert wait_for("it learns of it", lambda: lost, DEADLINE) == ["another server has taken over"]
    end_sessions(postgres, f"pg_stat_activity WHERE datname = '{old.url.database}'")
    with pytest.raises(StoreError, match="is not renewed"):
        old.confirm_sole_server()
    old.close()


@pytest.mark.parametrize(
    ("first", "second", "may"), [(LOCK, LOCK, True), (LOCK, "boot 8 of the home", False), ("", "", False)]
)
def test_the_lock_of_the_home_proves_that_the_server_before_is_dead(
    postgres_store: str, first: str, second: str, *, may: bool
) -> None:
    old = open_shared(postgres_store, "the old one", first)
    claim = old._claim
    assert claim is not None
    assert claim._session is not None
    claim._is_over.set()  # as a server that was killed: it renews nothing, and its sessions end
    claim._session.close()
    if may:
        new = open_shared(postgres_store, "the new one", second)
        assert not new.took_over, "a dead server has no files open"
        new.close()
    else:
        with pytest.raises(StoreError, match="is used by the old one"):
            open_shared(postgres_store, "the new one", second)
    old.close()


def test_a_server_that_ends_leaves_its_claim_at_once(postgres_store: str) -> None:
    first = open_shared(postgres_store, "one")
    first.close()
    second = open_shared(postgres_store, "two")
    assert not second.took_over
    assert look(postgres_store).holder.number == 2
    second.close()


def test_a_write_with_the_number_of_an_earlier_claim_is_refused(postgres_store: str) -> None:
    database = open_shared(postgres_store, "one")
    claim = database._claim
    assert claim is not None
    claim.number -= 1
    with pytest.raises(StoreError, match="is used by one"):
        submit(ExperimentStore(database))
    claim.number += 1
    assert submit(ExperimentStore(database)).number == 1
    database.close()


def test_every_transaction_begins_in_the_database_alone() -> None:
    """What writes without `Database.write_transaction` would write without the claim."""
    package = Path(riseml.__file__).parent
    begin = {"begin", "begin_nested", "connect", "raw_connection"}
    places = {
        f"{path.relative_to(package)}"
        for path in package.rglob("*.py")
        if any("sqlalchemy" in line for line in path.read_text().splitlines() if "import" in line)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in begin
    }
    assert places == {
        "store/database.py",
        "store/claim.py",  # the claim itself
        "store/home_record.py",  # the file of a home that no server uses
        "server/standby/turn.py",  # reads
    }
