"""Connections, transactions and migrations, on SQLite or PostgreSQL.

Writers run one after the other, so that the ids of events are in the order of their commits: a reader that continues
after an id misses no event.

- SQLite: WAL, full synchronisation (an acknowledged submission survives a power cut), and `BEGIN IMMEDIATE` for every
  transaction that writes. A deferred transaction that has read fails at once, without the busy timeout, when another
  one has written meanwhile.
- PostgreSQL: every write locks the holder row of `claim` first.

SQLite overwrites deleted values with zeros (`secure_delete`), because variables of jobs may be secrets. Its write-ahead
log also holds them until `empty_write_ahead_log`. PostgreSQL keeps old rows until VACUUM.

A job can fill the disk of SQLite's file with its output, so some space is reserved there for kills and for
decisions on accepted experiments (`keep_reserve`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from riseml.base.errors import StoreError
from riseml.base.faultpoints import Point, reach
from riseml.store.claim import (
    ALONE,
    ClaimTerms,
    DatabaseClaim,
    insert_holder_row,
    lock_holder_row,
    make_token,
    name_session,
)
from riseml.store.database_errors import describe_full_disk, read_address, show_address, translate_database_error
from riseml.store.home_record import OwnHome, check_home_record, make_other_store_error, write_home_record
from riseml.store.schema import facts, metadata

NEWEST_MIGRATION = "0026"
"""A test compares it with the versions folder."""

LOCK_TIMEOUT = 5.0
"""Seconds that a transaction waits while another process has locked the database; a client waits longer."""

_CONNECT_TIMEOUT = 3  # seconds
_MOST_UNANSWERED = 25_000  # milliseconds; a connection to a machine that vanished is broken then
_SHORT_WAIT = 100  # milliseconds; the loop does not wait longer for readers
_MOST_CONNECTIONS = 25  # at the same time; PostgreSQL allows 100 to all of its clients
_KEPT_CONNECTIONS = 5  # of PostgreSQL
_LOG_RESERVE = 8 << 20  # bytes of SQLite's write-ahead log
_SCARCE_SPACE = 1 << 20  # bytes
_SUPERUSER = 0

_VERSIONS = sa.Table(  # alembic's own table
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


class Database:
    """One SQL database.

    Example:
        >>> database = Database("sqlite:////home/paul/.riseml/riseml.db")
        >>> with database.read_transaction() as connection:
        ...     connection.execute(sa.select(experiments.c.id))

    Args:
        url: SQLAlchemy's address of it.
        holder: names this server in the error that another server gets; None claims nothing. Only PostgreSQL is
            claimed: the file of SQLite is in a home, which has its own lock.
        lock_timeout: seconds to wait while another process has locked it.
        home: the home of its server; None compares nothing. The first home that uses a store becomes its own.
        terms: how a database is claimed.

    Raises:
        StoreError: it is damaged, newer than this riseml, used by another server, belongs to another home, or cannot be
            opened.
    """

    def __init__(
        self,
        url: str,
        holder: str | None = None,
        lock_timeout: float = LOCK_TIMEOUT,
        home: OwnHome | None = None,
        terms: ClaimTerms = ALONE,
    ) -> None:
        self.url = read_address(url)
        token = make_token()
        self._home = home
        _make_private(self.url)
        self._lock_timeout = lock_timeout
        self.engine = _make_engine(self.url, lock_timeout, token)
        self._is_sqlite = self.engine.dialect.name == "sqlite"
        self._file = Path(self.url.database) if self._is_sqlite and self.url.database else None
        self._claim = (
            None
            if self._is_sqlite or holder is None
            else DatabaseClaim(_make_claim_engine(self.url, lock_timeout, token), holder, token, terms)
        )
        try:
            self._open_database()
        except BaseException:
            self.close()
            raise

    @property
    def is_elsewhere(self) -> bool:
        """True for a server of its own, which may be out of reach."""
        return not self._is_sqlite

    def __str__(self) -> str:
        return show_address(self.url)

    @contextmanager
    def read_transaction(self) -> Iterator[sa.Connection]:
        """Begin a transaction that sees one state of the store and writes nothing.

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
    def single_read(self) -> Iterator[sa.Connection]:
        """Begin a read of one statement. It sees one state of the store by itself: SQLite needs no transaction for it.

        Raises:
            StoreError: it cannot be read now.
        """
        if not self._is_sqlite:
            with self.read_transaction() as connection:
                yield connection
            return
        with self._translated(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write_transaction(self, *, vital: bool = False) -> Iterator[sa.Connection]:
        """Begin a transaction that may write; it holds the write lock from its beginning.

        Args:
            vital: it kills an experiment, or stores a decision on one that was accepted: it may use the space that is
                reserved for that when the disk of SQLite's file is full.

        Raises:
            StoreError: it cannot be written now. When the connection broke at the commit, the write may have happened.
        """
        if self._file is not None and not vital and lacks_space(self._file):
            raise describe_full_disk(self._file)
        with self._translated(), self._begin_transaction() as connection:
            if not self._is_sqlite:
                lock_holder_row(connection, self._claim)
            yield connection

    def empty_write_ahead_log(self) -> bool:
        """Move everything from SQLite's write-ahead log into its file, and cut the log to nothing.

        Returns:
            False while another connection reads, and on a full disk, where the log is what is left for a kill; the
            caller tries again. True at once with PostgreSQL.

        Raises:
            StoreError: the file cannot be written.
        """
        if not self._is_sqlite:
            return True
        if self._file is not None and lacks_space(self._file):
            return False
        with self._translated(), self.engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={_SHORT_WAIT}")
            try:
                busy, _, _ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            finally:
                connection.exec_driver_sql(f"PRAGMA busy_timeout={self._lock_timeout * 1000:.0f}")
            return not busy

    def confirm_sole_server(self) -> None:
        """Check that no other server uses the database: two servers must not act on the same hosts.

        Raises:
            StoreError: another server uses it, or it does not answer.
        """
        if self._claim is not None:
            with self._translated():
                self._claim.acquire_lock()

    def check_claim(self) -> None:
        """Check, without asking the database, that no other server may act now: before each effect outside of it.

        Raises:
            StoreError: another server may act.
        """
        if self._claim is not None:
            self._claim.check_fresh()

    @property
    def took_over(self) -> bool:
        """True when its former server may still live, and may go on writing files that it has opened."""
        return self._claim is not None and self._claim.took_over

    def close(self) -> None:
        """Close every connection."""
        if self._claim is not None:
            self._claim.release_lock()
        self.engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, PoolTimeout) as error:
            translated = translate_database_error(error, self.url)
            if translated is None:
                raise
            raise translated from error

    @contextmanager
    def _begin_transaction(self) -> Iterator[sa.Connection]:
        with self.engine.connect() as connection:
            if self._is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            if self._file is not None:
                keep_reserve(self._file)
            yield connection
            connection.commit()

    def _open_database(self) -> None:
        self.confirm_sole_server()
        with self._translated():
            self._check_integrity()
            self._check_home()
            if self._migrate():
                self._rewrite_file()
            self.empty_write_ahead_log()  # a killed server may have left erased values in the write-ahead log
            if not self._is_sqlite:
                with self._begin_transaction() as connection:
                    insert_holder_row(connection)
            if self._claim is not None:
                self._claim.write_holder()
        if self._home is not None:
            with self.write_transaction() as connection:
                write_home_record(connection, self._home.location)

    def _check_home(self) -> None:
        """Refuse a store of another home before anything in it changes."""
        if self._home is None:
            return
        if self._home.server is not None and self._find_revision() is None:
            raise make_other_store_error(self._home)
        with self.engine.connect() as connection:
            if sa.inspect(connection).has_table(facts.name):
                check_home_record(connection, self._home)

    def _check_integrity(self) -> None:
        if not self._is_sqlite:
            return
        with self.engine.connect() as connection:
            verdict = connection.exec_driver_sql("PRAGMA quick_check").scalar()
        if verdict != "ok":
            raise StoreError(f"the store {self} is damaged: {verdict}", "restore it from a backup, or move it away")

    def _migrate(self) -> bool:
        """Migrate the tables to this version. Return True when they were of an older version.

        Alembic is slow to import and large, so that an empty database and an up-to-date one do without it.
        """
        revision = self._find_revision()
        if revision == NEWEST_MIGRATION:
            return False
        if revision is None:
            self._create_tables()
            return False
        self._run_migrations()
        return True

    def _run_migrations(self) -> None:
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        try:
            with self._begin_transaction() as connection:  # all tables or none: a server may be killed in between
                config.attributes["connection"] = connection
                sa.event.listen(connection, "before_execute", lambda *_: reach(Point.MIGRATING))
                command.upgrade(config, "head")
        except CommandError as error:
            raise StoreError(
                f"the store {self} was written by a newer riseml: {error}",
                "upgrade riseml, or use another RISEML_HOME",
            ) from error

    def _create_tables(self) -> None:
        """Create all tables in an empty database, as the migrations would leave them."""
        with self._begin_transaction() as connection:  # all of them or none
            sa.event.listen(connection, "before_execute", lambda *_: reach(Point.MIGRATING))
            metadata.create_all(connection, checkfirst=False)
            _VERSIONS.create(connection)
            connection.execute(_VERSIONS.insert().values(version_num=NEWEST_MIGRATION))

    def _rewrite_file(self) -> None:
        """Rewrite SQLite's file without values that earlier versions deleted and did not overwrite."""
        if self._is_sqlite:
            with self.engine.connect() as connection:
                connection.exec_driver_sql("VACUUM")

    def _find_revision(self) -> str | None:
        with self.engine.connect() as connection:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def lacks_space(file: Path) -> bool:
    """Return True when the disk of SQLite's file is full, or nearly so: less than `_SCARCE_SPACE` bytes are free.

    All but vital writes are refused then, so that they do not use the reserve up.
    """
    return _count_free(file) < _SCARCE_SPACE


def keep_reserve(file: Path) -> None:
    """Give the write-ahead log of SQLite's file its size, if there is space; the caller holds the write lock.

    The log has `_LOG_RESERVE` bytes from the first write on, which no job can take: SQLite writes over them. It begins
    again at the first byte once it has moved the log into its file, after about 4 MiB at the latest, unless the file
    has to grow for that. File systems that write every change to a new place (btrfs, ZFS) have no such space.

    The log is not the file on which SQLite has its locks, so that it may be opened and closed.
    """
    log = f"{file}-wal"
    with suppress(OSError):  # the reserve is made with the next write: this one needs none
        if os.stat(log).st_size >= _LOG_RESERVE or _count_free(file) < _LOG_RESERVE + _SCARCE_SPACE:
            return
        descriptor = os.open(log, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.posix_fallocate(descriptor, 0, _LOG_RESERVE)
        finally:
            os.close(descriptor)


def _count_free(file: Path) -> int:
    """Return the bytes that this process may still write to the disk of a file."""
    disk = os.statvfs(file.parent)
    return disk.f_frsize * (disk.f_bfree if os.geteuid() == _SUPERUSER else disk.f_bavail)


def _make_private(url: sa.URL) -> None:
    """Make the file of SQLite private to its user (mode 0600): it holds variables of jobs, which may be secrets.

    SQLite gives the files beside it the same mode.
    """
    if url.get_backend_name() != "sqlite" or not url.database:
        return
    try:
        if not os.path.exists(url.database):  # do not open an existing file: closing it would release SQLite's locks
            os.close(os.open(url.database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.chmod(url.database, 0o600)
    except OSError as error:
        raise StoreError(
            f"the store {url.database} cannot be opened: {error.strerror}",
            f"make {Path(url.database).parent} and what is in it yours and writable",
        ) from error


def _make_engine(url: sa.URL, lock_timeout: float, token: str) -> sa.Engine:
    """Return the engine. Its errors never show parameters: the row of an experiment holds the secrets of `env`."""
    options: dict[str, Any] = {
        "hide_parameters": True,
        "pool_size": _KEPT_CONNECTIONS,
        "max_overflow": _MOST_CONNECTIONS - _KEPT_CONNECTIONS,
        "pool_timeout": lock_timeout,
    }
    try:
        if url.get_backend_name() == "sqlite":
            # all are kept: to open one again takes longer than most queries, and costs nobody else a place
            engine = sa.create_engine(url, **options | {"pool_size": _MOST_CONNECTIONS, "max_overflow": 0})
        else:
            settings = _session_settings(lock_timeout, "store", token)
            engine = sa.create_engine(url, pool_pre_ping=True, connect_args=settings, **options)
    except ModuleNotFoundError as error:
        raise _make_driver_error(url, error) from error
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", lambda connection, _: _set_pragmas(connection, lock_timeout))
    return engine


def _make_claim_engine(url: sa.URL, lock_timeout: float, token: str) -> sa.Engine:
    """Return an engine without a pool that commits every statement: the lock must end with its connection."""
    settings = _session_settings(lock_timeout, "claim", token)
    return sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT", connect_args=settings)


def open_claim_reader(address: str) -> sa.Engine:
    """Return an engine with which a standby looks at the claim on a database (`claim.read_claim`).

    Raises:
        StoreError: it is not an address, or the driver is missing.
    """
    url = read_address(address)
    try:
        return _make_claim_engine(url, LOCK_TIMEOUT, "")
    except ModuleNotFoundError as error:
        raise _make_driver_error(url, error) from error


def _make_driver_error(url: sa.URL, error: ModuleNotFoundError) -> StoreError:
    return StoreError(f"the store {show_address(url)} needs the package {error.name}", "pip install 'riseml[postgres]'")


def _session_settings(lock_timeout: float, purpose: str, token: str) -> dict[str, Any]:
    """Return the settings of a PostgreSQL session; keepalives release the lock of a server whose machine vanished."""
    settings = {
        "lock_timeout": f"{lock_timeout * 1000:.0f}",
        "idle_in_transaction_session_timeout": "60000",
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "3",
    }
    return {
        "connect_timeout": _CONNECT_TIMEOUT,
        "tcp_user_timeout": _MOST_UNANSWERED,
        "application_name": name_session(purpose, token),
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
    }


def _set_pragmas(connection: Any, lock_timeout: float) -> None:
    connection.isolation_level = None  # `Database` begins transactions, not the driver
    busy = f"busy_timeout={lock_timeout * 1000:.0f}"  # first, because the other pragmas may have to wait for a lock
    for pragma in (busy, "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")
