"""One server a PostgreSQL.

A server holds an advisory lock for as long as its session lives. The database frees it with the session, at once and
without a word to the server, so that the lock alone is a hint: beside it a row names the server that took it last, and
every write looks at the row first. A server that has lost both does nothing until it has them again.
"""

from __future__ import annotations

import json
import threading
import uuid

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from riseml.errors import StoreError
from riseml.store.schema import facts

_KEY = 0x7269_7365_6D6C  # "riseml"; advisory locks are numbers
_HOLDER = "holder"
_TAKEN = "55P03"  # lock_not_available


class DatabaseClaim:
    """The claim of one server on a database. Safe from many threads.

    Args:
        engine: of the database, without a pool and without transactions: the lock must end with its connection.
        holder: who claims it, for people.
    """

    def __init__(self, engine: sa.Engine, holder: str) -> None:
        self.token = uuid.uuid4().hex
        self._engine = engine
        self._holder = holder
        self._signed = False
        self._session: sa.Connection | None = None
        self._lock = threading.Lock()

    def acquire_lock(self) -> None:
        """Take the lock; nothing to do while the session that has it lives.

        Raises:
            StoreError: another server has it.
        """
        with self._lock:
            if self._session is not None and not self._lives(self._session):
                self._session = None
            if self._session is None:
                self._session = self._take()

    def write_holder(self) -> None:
        """Write down who holds it, once there is a table for it."""
        with self._lock:
            self._signed = True
            if self._session is not None:
                self._write(self._session)

    def release_lock(self) -> None:
        """Let it go."""
        with self._lock:
            if self._session is not None:
                self._session.close()
            self._session = None

    def _take(self) -> sa.Connection:
        session = self._engine.connect()
        try:  # for a moment: the server before this one may just be ending
            session.execute(sa.select(sa.func.pg_advisory_lock(_KEY)))
            if self._signed:
                self._write(session)
        except DBAPIError as error:
            session.close()
            if getattr(error.orig, "sqlstate", None) == _TAKEN:
                raise self._refuse() from error
            raise
        return session

    def _lives(self, session: sa.Connection) -> bool:
        try:
            session.exec_driver_sql("SELECT 1")
        except DBAPIError:
            session.close()
            return False
        return True

    def _write(self, session: sa.Connection) -> None:
        value = json.dumps({"token": self.token, "holder": self._holder})
        session.execute(facts.update().where(facts.c.name == _HOLDER).values(value=value))

    def _refuse(self) -> StoreError:
        with self._engine.connect() as connection:
            known = sa.inspect(connection).has_table(facts.name)
            row = (
                connection.execute(sa.select(facts.c.value).where(facts.c.name == _HOLDER)).scalar() if known else None
            )
        return _taken(self._engine.url, row)


def lock_holder_row(connection: sa.Connection, claim: DatabaseClaim | None) -> None:
    """Begin a write: wait for the writers before, and make sure that nobody else has taken the database over.

    Raises:
        StoreError: somebody has.
    """
    row = connection.execute(sa.select(facts.c.value).where(facts.c.name == _HOLDER).with_for_update()).scalar()
    if claim is not None and (row is None or json.loads(row).get("token") != claim.token):
        raise _taken(connection.engine.url, row)


def insert_holder_row(connection: sa.Connection) -> None:
    """Make the row that writers lock."""
    known = connection.execute(sa.select(facts.c.name).where(facts.c.name == _HOLDER)).scalar()
    if known is None:
        connection.execute(facts.insert().values(name=_HOLDER, value="{}"))


def _taken(url: sa.URL, row: str | None) -> StoreError:
    who = json.loads(row or "{}").get("holder", "another server")
    return StoreError(
        f"the store {url.render_as_string(hide_password=True)} is used by {who}",
        "a database has one server: stop that one first, or use another database",
    )
