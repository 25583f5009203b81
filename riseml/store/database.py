"""Connecting: pragmas, migrations, transactions.

SQLite: WAL, full synchronisation (an acknowledged submit survives), and `BEGIN IMMEDIATE` for every transaction that
writes, because a deferred one that read first fails at once when somebody else has written meanwhile, whatever the busy
timeout.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from riseml.errors import RisemlError
from riseml.faultpoints import Point, reach

HEAD = "0002"
"""The newest migration; a test holds it against the versions folder."""

_BUSY_MS = 30_000


class StoreError(RisemlError):
    """The store cannot be used."""


class Database:
    """One SQL database.

    Args:
        url: SQLAlchemy's address of it.

    Raises:
        StoreError: it is damaged, newer than this riseml, or cannot be opened.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = sa.create_engine(url)
        if self.engine.dialect.name == "sqlite":
            sa.event.listen(self.engine, "connect", _set_pragmas)
        try:
            self._check()
            self._migrate()
        except DatabaseError as error:
            raise StoreError(
                f"the store {url} cannot be opened: {error.orig}", "restore it from a backup, or move it away"
            ) from error

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that sees one state of the store and writes nothing."""
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction that may write; it holds the write lock from its beginning."""
        with self.engine.connect() as connection:
            if self.engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    def close(self) -> None:
        """Give every connection back."""
        self.engine.dispose()

    def _check(self) -> None:
        if self.engine.dialect.name != "sqlite":
            return
        with self.engine.connect() as connection:
            verdict = connection.exec_driver_sql("PRAGMA quick_check").scalar()
        if verdict != "ok":
            raise StoreError(f"the store {self.url} is damaged: {verdict}", "restore it from a backup, or move it away")

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
            with self.write() as connection:  # all tables or none: a server may be killed in between
                config.attributes["connection"] = connection
                sa.event.listen(connection, "before_execute", lambda *_: reach(Point.MIGRATING))
                command.upgrade(config, "head")
        except CommandError as error:
            raise StoreError(
                f"the store {self.url} was written by a newer riseml: {error}",
                "upgrade riseml, or use another RISEML_HOME",
            ) from error

    def _revision(self) -> str | None:
        with self.engine.connect() as connection:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def _set_pragmas(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions are begun by us, not by the driver
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={_BUSY_MS}", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
