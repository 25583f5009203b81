"""Connecting: migrations and transactions, on SQLite or PostgreSQL.

SQLite: WAL, full synchronisation (an acknowledged submit survives), and `BEGIN IMMEDIATE` for every transaction that
writes, because a deferred one that read first fails at once when somebody else has written meanwhile, whatever the busy
timeout. PostgreSQL: the row of `claim` is locked first, to the same end: writers come one after the other, so that the
ids of events are in the order of their commits, and a reader behind an id misses none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from riseml.errors import StoreError
from riseml.faultpoints import Point, reach
from riseml.store.claim import DatabaseClaim, insert_holder_row, lock_holder_row
from riseml.store.database_errors import translate_database_error

HEAD = "0003"
"""The newest migration; a test holds it against the versions folder."""

PATIENCE = 5.0
"""Seconds that a transaction waits for a store that somebody else has locked; a client waits longer for its answer."""

_CONNECT = 5  # seconds
_CONNECTIONS = 25  # at the same time; PostgreSQL allows 100 to all of its clients


class Database:
    """One SQL database.

    Args:
        url: SQLAlchemy's address of it.
        holder: who uses it alone, in words for the one who is refused; None claims nothing. Only PostgreSQL is claimed:
            the file of SQLite is in a home, which has a lock of its own.
        patience: seconds to wait while somebody else has locked it.

    Raises:
        StoreError: it is damaged, newer than this riseml, somebody else's, or cannot be opened.
    """

    def __init__(self, url: str, holder: str | None = None, patience: float = PATIENCE) -> None:
        self.url = sa.make_url(url)
        _make_private(self.url)
        self.engine = _make_engine(self.url, patience)
        self._is_sqlite = self.engine.dialect.name == "sqlite"
        self._claim = (
            None if self._is_sqlite or holder is None else DatabaseClaim(_make_bare(self.url, patience), holder)
        )
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)

    @contextmanager
    def read_transaction(self) -> Iterator[sa.Connection]:
        """A transaction that sees one state of the store and writes nothing.

        Raises:
            StoreError: it cannot be read now.
        """
        with self._translated(), self.engine.connect() as connection:
            if self._is_sqlite:
                connection.exec_driver_sql("BEGIN")
            else:
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[sa.Connection]:
        """A transaction that may write; it holds the write lock from its beginning.

        Raises:
            StoreError: it cannot be written now; when the store went away, what was written may be there all the same.
        """
        with self._translated(), self._begin() as connection:
            if not self._is_sqlite:
                lock_holder_row(connection, self._claim)
            yield connection

    def confirm_sole_server(self) -> None:
        """See to it that this server alone uses the database: what is done to hosts must not be done twice.

        Raises:
            StoreError: another server uses it, or it does not answer.
        """
        if self._claim is not None:
            with self._translated():
                self._claim.acquire_lock()

    def close(self) -> None:
        """Give every connection back."""
        if self._claim is not None:
            self._claim.release_lock()
        self.engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, PoolTimeout) as error:
            trouble = translate_database_error(error, self.url)
            if trouble is None:
                raise
            raise trouble from error

    @contextmanager
    def _begin(self) -> Iterator[sa.Connection]:
        with self.engine.connect() as connection:
            if self._is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    def _open(self) -> None:
        self.confirm_sole_server()
        with self._translated():
            self._check()
            self._migrate()
            if not self._is_sqlite:
                with self.engine.begin() as connection:
                    insert_holder_row(connection)
            if self._claim is not None:
                self._claim.write_holder()

    def _check(self) -> None:
        if not self._is_sqlite:
            return
        with self.engine.connect() as connection:
            verdict = connection.exec_driver_sql("PRAGMA quick_check").scalar()
        if verdict != "ok":
            raise StoreError(f"the store {self} is damaged: {verdict}", "restore it from a backup, or move it away")

    def _migrate(self) -> None:
        """Bring the tables up to date. Alembic is slow to import, so that it is asked only when there is something to
        do.
        """
        if self._revision() == HEAD:
            return
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        try:
            with self._begin() as connection:  # all tables or none: a server may be killed in between
                config.attributes["connection"] = connection
                sa.event.listen(connection, "before_execute", lambda *_: reach(Point.MIGRATING))
                command.upgrade(config, "head")
        except CommandError as error:
            raise StoreError(
                f"the store {self} was written by a newer riseml: {error}",
                "upgrade riseml, or use another RISEML_HOME",
            ) from error

    def _revision(self) -> str | None:
        with self.engine.connect() as connection:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def _make_private(url: sa.URL) -> None:
    """The file of SQLite, for its user alone: environments of jobs are in it, and they may be secrets. The files beside
    it get the same mode.
    """
    if url.get_backend_name() != "sqlite" or not url.database:
        return
    try:
        if not os.path.exists(url.database):  # one that is there is not opened: to close it would end SQLite's locks
            os.close(os.open(url.database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.chmod(url.database, 0o600)
    except OSError as error:
        raise StoreError(
            f"the store {url.database} cannot be opened: {error.strerror}",
            f"make {Path(url.database).parent} and what is in it yours and writable",
        ) from error


def _make_engine(url: sa.URL, patience: float) -> sa.Engine:
    size = {"pool_size": 5, "max_overflow": _CONNECTIONS - 5, "pool_timeout": patience}
    try:
        if url.get_backend_name() == "sqlite":
            engine = sa.create_engine(url, **size)
        else:
            engine = sa.create_engine(url, pool_pre_ping=True, connect_args=_session(patience), **size)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"the store {url.render_as_string(hide_password=True)} needs the package {error.name}",
            "pip install 'riseml[postgres]'",
        ) from error
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", lambda connection, _: _set_pragmas(connection, patience))
    return engine


def _make_bare(url: sa.URL, patience: float) -> sa.Engine:
    """An engine whose connections live as long as they are used, and commit every statement."""
    return sa.create_engine(
        url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT", connect_args=_session(patience, "claim")
    )


def _session(patience: float, what: str = "store") -> dict[str, Any]:
    """What a session of PostgreSQL is begun with. Keepalives free the claim of a server whose machine has vanished."""
    settings = {
        "lock_timeout": f"{patience * 1000:.0f}",
        "idle_in_transaction_session_timeout": "60000",
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "3",
    }
    return {
        "connect_timeout": _CONNECT,
        "application_name": f"riseml {what}",
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
    }


def _set_pragmas(connection: Any, patience: float) -> None:
    connection.isolation_level = None  # transactions are begun by us, not by the driver
    busy = f"busy_timeout={patience * 1000:.0f}"  # first: the others may have to wait
    for pragma in (busy, "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
