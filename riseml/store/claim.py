"""The claim of one server on a PostgreSQL database: two servers must not act on the same hosts.

A server holds an advisory lock for as long as its session lives. The database releases the lock with the session and
does not notify the server, so that the lock alone is only a hint. In addition, the holder row names the server that
took the lock last, and every write checks the row first. A server that has lost the lock writes nothing until it holds
the lock again.
"""

from __future__ import annotations

import json
import threading
import uuid

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from riseml.base.errors import StoreError
from riseml.store.database_errors import is_lock_timeout, show_address
from riseml.store.schema import facts

_LOCK_NUMBER = 0x7269_7365_6D6C  # "riseml" in ASCII; advisory locks are numbers
_HOLDER = "holder"  # name of the holder row among the facts


class DatabaseClaim:
    """The claim of one server on a database. Safe from many threads.

    Args:
        engine: of the database, without a pool and without transactions: the lock must end with its connection.
        holder: names this server in the error that another server gets.
    """

    def __init__(self, engine: sa.Engine, holder: str) -> None:
        self.token = uuid.uuid4().hex
        self._engine = engine
        self._holder = holder
        self._writes_holder = False
        self._session: sa.Connection | None = None
        self._lock = threading.Lock()

    def acquire_lock(self) -> None:
        """Take the lock, unless this server's session still holds it.

        Raises:
            StoreError: another server has it.
        """
        with self._lock:
            if self._session is not None and not self._is_alive(self._session):
                self._session = None
            if self._session is None:
                self._session = self._lock_session()

    def write_holder(self) -> None:
        """Write this server into the holder row; call it once the tables are there."""
        with self._lock:
            self._writes_holder = True
            if self._session is not None:
                self._update_holder(self._session)

    def release_lock(self) -> None:
        """Release the lock."""
        with self._lock:
            if self._session is not None:
                self._session.close()
            self._session = None

    def _lock_session(self) -> sa.Connection:
        session = self._engine.connect()
        try:  # wait until the lock timeout: the previous server may be ending at this moment
            session.execute(sa.select(sa.func.pg_advisory_lock(_LOCK_NUMBER)))
            if self._writes_holder:
                self._update_holder(session)
        except DBAPIError as error:
            session.close()
            if is_lock_timeout(error):
                raise self._describe_holder() from error
            raise
        return session

    def _is_alive(self, session: sa.Connection) -> bool:
        try:
            session.exec_driver_sql("SELECT 1")
        except DBAPIError:
            session.close()
            return False
        return True

    def _update_holder(self, session: sa.Connection) -> None:
        value = json.dumps({"token": self.token, "holder": self._holder})
        session.execute(facts.update().where(facts.c.name == _HOLDER).values(value=value))

    def _describe_holder(self) -> StoreError:
        with self._engine.connect() as connection:
            has_facts = sa.inspect(connection).has_table(facts.name)
            row = (
                connection.execute(sa.select(facts.c.value).where(facts.c.name == _HOLDER)).scalar()
                if has_facts
                else None
            )
        return _used_error(self._engine.url, row)


def lock_holder_row(connection: sa.Connection, claim: DatabaseClaim | None) -> None:
    """Begin a write: wait for earlier writers, and check that no other server has taken over the database.

    Raises:
        StoreError: another server did.
    """
    row = connection.execute(sa.select(facts.c.value).where(facts.c.name == _HOLDER).with_for_update()).scalar()
    if claim is not None and (row is None or json.loads(row).get("token") != claim.token):
        raise _used_error(connection.engine.url, row)


def insert_holder_row(connection: sa.Connection) -> None:
    """Create the row that writers lock, if it is missing."""
    holder = connection.execute(sa.select(facts.c.name).where(facts.c.name == _HOLDER)).scalar()
    if holder is None:
        connection.execute(facts.insert().values(name=_HOLDER, value="{}"))


def _used_error(url: sa.URL, row: str | None) -> StoreError:
    holder = json.loads(row or "{}").get("holder", "another server")
    return StoreError(
        f"the store {show_address(url)} is used by {holder}",
        "a database has one server: stop that one first, or use another database",
    )
