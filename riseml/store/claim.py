"""The claim of one server on a PostgreSQL database: two servers must not act on the same hosts.

The holder row names the server that took the claim last, with a number that grows with each take-over. Every write
transaction locks the row first and compares it, so that a server that has lost its claim writes nothing.

A server that runs alone also holds an advisory lock for as long as its session lives. The database releases the lock
with the session and does not notify the server: it takes the lock again, unless another server has it.

A server with a standby (`ClaimTerms.shared`) renews its claim as well, in the lease row. Its own deadline, by the
monotonic clock of its machine from the moment before it sent the renewal, comes earlier than the moment at which a
standby may take over, by the clock of the database from the moment at which the renewal arrived. So a server that was
stopped, or that is cut off from the database, knows that it may not act any more before another one acts.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, field, replace
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from riseml.base.errors import StoreError
from riseml.base.records import dataclass
from riseml.base.settings import DEFAULT_TAKEOVER_AFTER
from riseml.store.database_errors import is_lock_timeout, show_address
from riseml.store.schema import facts

APPLICATION = "riseml"
"""The first word of the name of each session; the last one is the beginning of the token of its server."""

_LOCK_NUMBER = 0x7269_7365_6D6C  # "riseml" in ASCII; advisory locks are numbers
_HOLDER = "holder"  # name of the holder row among the facts
_LEASE = "lease"  # name of the lease row among the facts
_OWN_PART = 0.6  # of the time after which a standby takes over: for so long a server trusts its last renewal
_RENEWALS = 5  # in that time
_TOKEN_LENGTH = 12  # characters of the token in the names of sessions
_NOW = "extract(epoch FROM clock_timestamp())"


class StoreUsed(StoreError):
    """Another server holds the claim on the database."""


@dataclass(frozen=True, slots=True)
class ClaimTerms:
    """How a server claims its database."""

    shared: bool = False  # a standby may take over as soon as the claim has not been renewed for `patience`
    lock: str = ""  # names the lock of the home that this process holds; empty: it holds none
    patience: float = DEFAULT_TAKEOVER_AFTER  # seconds
    address: str = ""  # where clients reach this server
    on_loss: Callable[[str], object] = field(default=lambda _: None)  # takes why a shared claim is over


ALONE = ClaimTerms()
"""How a server without a standby claims its database."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder row: the server that took the claim last."""

    token: str = ""
    holder: str = "another server"  # in words
    number: int = 0  # of the claim; grows with each take-over
    since: str = ""  # RFC 3339, by the clock of the database
    shared: bool = False
    patience: float = 0.0  # seconds
    lock: str = ""
    address: str = ""
    released: bool = False  # its server has ended


@dataclass(frozen=True, slots=True)
class ClaimState:
    """The claim as a standby sees it."""

    holder: Holder
    silence: float  # seconds since it was renewed the last time

    @property
    def is_expired(self) -> bool:
        """True when the holder has not renewed a claim that a standby may take over."""
        return self.holder.shared and self.silence > self.holder.patience


class DatabaseClaim:
    """The claim of one server on a database. Safe from many threads.

    Args:
        engine: of the database, without a pool and without transactions: the lock must end with its connection.
        holder: names this server in the error that another server gets.
        token: names this server among all that ever were; its sessions have the beginning of it in their names.
        terms: how it claims.
    """

    def __init__(self, engine: sa.Engine, holder: str, token: str, terms: ClaimTerms) -> None:
        self.token = token
        self.terms = terms
        self.number = 0
        self.took_over = False  # from a server that may still live
        self._engine = engine
        self._holder = holder
        self._session: sa.Connection | None = None
        self._lock = threading.Lock()
        self._deadline = 0.0  # of a shared claim, on the monotonic clock
        self._is_over = threading.Event()  # it was released or lost

    def acquire_lock(self) -> None:
        """Take the claim, unless this server's session still holds it.

        Raises:
            StoreUsed: another server has it.
        """
        with self._lock:
            if self._session is not None and not _is_alive(self._session):
                self._session = None
            if self._session is None:
                self._session = self._open_session()
        self.check_fresh()

    def write_holder(self) -> None:
        """Write this server into the holder row; call it once the tables are there."""
        with self._lock:
            if self._session is not None and not self.number:
                self._take_row(self._session)

    def check_fresh(self) -> None:
        """Check that no other server may act now.

        Raises:
            StoreError: the claim was lost, or was not renewed for so long that a standby may take over.
        """
        if self.number and not self._is_current():
            raise StoreError(
                f"the claim of this server on the store {show_address(self._engine.url)} is not renewed",
                "another server may have taken over; this one does nothing until it holds the claim",
            )

    def _is_current(self) -> bool:
        """Return True when this server has the claim, as far as it knows."""
        is_fresh = not (self._is_over.is_set() or time.monotonic() > self._deadline)
        return self.number > 0 and (is_fresh or not self.terms.shared)

    def release_lock(self) -> None:
        """Release the lock, and let the holder row say that this server has ended."""
        is_current = self._is_current()
        self._is_over.set()
        with self._lock:
            if self._session is not None:
                if is_current:  # otherwise the database may not answer
                    self._release_row(self._session)
                self._session.close()
            self._session = None

    def _open_session(self) -> sa.Connection:
        session = self._engine.connect()
        try:
            before = read_claim(session)
            if self.terms.shared and before is not None and before.is_expired:
                _end_sessions(session, before.holder.token)
            # wait until the lock timeout: the previous server may be ending at this moment
            session.execute(sa.select(sa.func.pg_advisory_lock(_LOCK_NUMBER)))
            if before is not None or self.number:
                self._take_row(session)
        except BaseException as error:
            session.close()
            if isinstance(error, DBAPIError) and is_lock_timeout(error):
                raise self._describe_holder() from error
            raise
        return session

    def _take_row(self, session: sa.Connection) -> None:
        """Write this server into the holder row, if it may take the claim now; the session has the lock."""
        begun = time.monotonic()
        with session.engine.connect().execution_options(isolation_level="READ COMMITTED") as connection:
            connection.execute(sa.select(facts.c.name).where(facts.c.name.in_((_HOLDER, _LEASE))).with_for_update())
            before = read_claim(connection)
            if before is None or not self._may_take(before):
                raise _make_used_error(session.engine.url, Holder() if before is None else before.holder)
            if before.holder.token == self.token:
                return
            self.took_over = before.is_expired and not (before.holder.released or self._has_lock_of(before.holder))
            number = before.holder.number + 1
            since = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
            connection.execute(
                facts.update().where(facts.c.name == _HOLDER).values(value=self._describe_self(number, since))
            )
            connection.execute(facts.delete().where(facts.c.name == _LEASE))
            connection.execute(facts.insert().values(name=_LEASE, value=sa.text(f"'{self.token} ' || {_NOW}")))
            connection.commit()
        is_first = not self.number
        self.number = number
        self._deadline = begun + _OWN_PART * self.terms.patience
        if is_first and self.terms.shared:
            for work in (self._renew, self._watch_deadline):
                threading.Thread(target=work, name=f"claim{work.__name__}", daemon=True).start()

    def _may_take(self, before: ClaimState) -> bool:
        """Return True when nothing says that the server in the holder row may still act."""
        holder = before.holder
        if holder.token == self.token:
            return True
        if self.number and self.terms.shared:  # what this server has in memory is older than what the other one did
            return False
        return not holder.shared or holder.released or self._has_lock_of(holder) or before.is_expired

    def _has_lock_of(self, holder: Holder) -> bool:
        """Return True when this process has the lock that the other one held: that one has ended."""
        return bool(holder.lock) and holder.lock == self.terms.lock

    def _describe_self(self, number: int, since: datetime) -> str:
        terms = self.terms
        moment = since.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        own = Holder(self.token, self._holder, number, moment, terms.shared, terms.patience, terms.lock, terms.address)
        return json.dumps(asdict(own))

    def _renew(self) -> None:
        """Renew the claim until it is over. A statement may hang for as long as the network does."""
        pause = _OWN_PART * self.terms.patience / _RENEWALS
        renewal = sa.text(
            f"UPDATE facts SET value = :token || ' ' || {_NOW} WHERE name = '{_LEASE}' AND value LIKE :token || ' %'"
        ).bindparams(token=self.token)
        connection: sa.Connection | None = None
        while not self._is_over.wait(pause):
            begun = time.monotonic()
            try:
                connection = connection or self._engine.connect()
                count = connection.execute(renewal).rowcount
            except SQLAlchemyError:  # the watch of the deadline ends a server that cannot renew
                if connection is not None:
                    connection.invalidate()
                connection = None
                continue
            if count:
                self._deadline = begun + _OWN_PART * self.terms.patience
            else:
                self._end("another server has taken over")
        if connection is not None:
            connection.close()

    def _watch_deadline(self) -> None:
        while not self._is_over.wait(max(0.0, self._deadline - time.monotonic())):
            if time.monotonic() > self._deadline:
                self._end("its claim on the store was not renewed in time, and another server may take over")

    def _end(self, why: str) -> None:
        if not self._is_over.is_set():
            self._is_over.set()
            self.terms.on_loss(why)

    def _release_row(self, session: sa.Connection) -> None:
        own = facts.c.name == _HOLDER, facts.c.value.like(f'%"{self.token}"%')
        try:
            row = session.execute(sa.select(facts.c.value).where(*own)).scalar()
            if row is not None:
                ended = json.dumps(asdict(replace(_read_holder(row), released=True)))
                session.execute(facts.update().where(*own).values(value=ended))
        except SQLAlchemyError:  # the lock ends with the session, and a shared claim with its time
            return

    def _describe_holder(self) -> StoreUsed:
        with self._engine.connect() as connection:
            state = read_claim(connection)
        return _make_used_error(self._engine.url, Holder() if state is None else state.holder)


def make_token() -> str:
    """Return a new token of a server."""
    return uuid.uuid4().hex


def name_session(purpose: str, token: str) -> str:
    """Return the name of a session, by which another server finds it."""
    return f"{APPLICATION} {purpose} {token[:_TOKEN_LENGTH]}".strip()


def read_claim(connection: sa.Connection) -> ClaimState | None:
    """Return the claim on a database; None when the database has no holder row."""
    if not sa.inspect(connection).has_table(facts.name):
        return None
    query = sa.select(facts.c.name, facts.c.value, sa.literal_column(_NOW)).where(facts.c.name.in_((_HOLDER, _LEASE)))
    rows = {name: (value, float(moment)) for name, value, moment in connection.execute(query)}
    if _HOLDER not in rows:
        return None
    row, moment = rows[_HOLDER]
    lease, _ = rows.get(_LEASE, ("", 0.0))
    holder = _read_holder(row)
    token, _, renewed = lease.partition(" ")
    return ClaimState(holder, moment - float(renewed) if token == holder.token and renewed else 0.0)


def lock_holder_row(connection: sa.Connection, claim: DatabaseClaim | None) -> None:
    """Begin a write: wait for earlier writers, and check that no other server has taken over the database.

    Raises:
        StoreUsed: another server did.
    """
    query = sa.select(facts.c.value).where(facts.c.name == _HOLDER).with_for_update()
    row = connection.execute(query).scalar()
    if claim is not None:
        holder = Holder() if row is None else _read_holder(row)
        if (holder.token, holder.number) != (claim.token, claim.number):
            raise _make_used_error(connection.engine.url, holder)


def insert_holder_row(connection: sa.Connection) -> None:
    """Create the row that writers lock, if it is missing."""
    holder = connection.execute(sa.select(facts.c.name).where(facts.c.name == _HOLDER)).scalar()
    if holder is None:
        connection.execute(facts.insert().values(name=_HOLDER, value="{}"))


def _read_holder(row: str) -> Holder:
    """Return the holder in a row; a server of an earlier version writes fewer fields."""
    document = json.loads(row)
    return Holder(**{name: value for name, value in document.items() if name in Holder.__slots__})


def _end_sessions(session: sa.Connection, token: str) -> None:
    """End the sessions of a server: a transaction of one that was stopped holds the holder row."""
    query = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name LIKE :name"
    )
    session.execute(sa.text(query).bindparams(name=f"{APPLICATION} % {token[:_TOKEN_LENGTH]}"))


def _is_alive(session: sa.Connection) -> bool:
    try:
        session.exec_driver_sql("SELECT 1")
    except DBAPIError:
        session.close()
        return False
    return True


def _make_used_error(url: sa.URL, holder: Holder) -> StoreUsed:
    return StoreUsed(
        f"the store {show_address(url)} is used by {holder.holder}",
        "a database has one server: stop that one first, use another database, or wait with"
        " `riseml server run --standby`",
    )
