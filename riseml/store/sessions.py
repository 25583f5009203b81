"""Sessions at a team's server: of browsers, and of commands that logged in at the organisation's provider.

A session has a secret of 256 random bits, which its client alone has: the store keeps a keyed hash of it. It ends
when it was not used for a while, at its expiry, and when someone ends it; the store then has no row of it.
"""

from __future__ import annotations

import enum
import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from riseml.base.api_keys import SESSION_PREFIX
from riseml.base.errors import StoreError
from riseml.base.records import dataclass
from riseml.store.database import Database
from riseml.store.schema import sessions

_SECRET_BYTES = 32
_ID_BYTES = 8
_LONGEST_AGENT = 200  # characters; the column has the same
_LONGEST_ADDRESS = 64
_USE_STEP = timedelta(minutes=1)  # between two writes of the last use
_MOST_CACHED = 10_000  # sessions
_MOST_OF_USER = 50  # sessions of each kind; the one that was used longest ago is ended

log = logging.getLogger(__name__)


class SessionKind(enum.Enum):
    """What uses a session."""

    PAGE = "page"  # a browser
    DEVICE = "device"  # a command that logged in at the provider


@dataclass(frozen=True, slots=True)
class SessionLife:
    """When a session ends by itself."""

    idle: timedelta  # without use
    whole: timedelta  # from its beginning


LIVES: Mapping[SessionKind, SessionLife] = {
    SessionKind.PAGE: SessionLife(timedelta(hours=12), timedelta(days=7)),
    SessionKind.DEVICE: SessionLife(timedelta(days=14), timedelta(days=30)),
}
"""How long sessions last."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session."""

    id: str
    user: str
    kind: SessionKind
    created_at: datetime
    used_at: datetime  # exact to a minute
    expires_at: datetime
    user_agent: str
    address: str  # from which it was opened
    key: str = ""  # id of the key that opened it, and bounds it; empty: the provider did
    refresh: str | None = None  # sealed refresh token of the provider
    checked_at: datetime | None = None  # when the provider last said what the user may do

    def has_ended(self, moment: datetime) -> bool:
        """Return True when it has expired, or was not used for too long."""
        return moment >= self.expires_at or moment - self.used_at >= LIVES[self.kind].idle


@dataclass(frozen=True, slots=True)
class SessionOrigin:
    """Who opens a session, and from where."""

    user: str
    kind: SessionKind
    user_agent: str
    address: str
    key: str = ""  # id of the key that opens it; empty: the provider does


class SessionStore:
    """The sessions in one database. Several threads use it.

    Args:
        database: has them.
        compute_digest: returns the keyed hash of a secret.

    Example:
        session, secret = store.open(SessionOrigin("ann", SessionKind.PAGE, "Firefox", "10.0.0.7"), now())
        assert store.find(secret, now()) == session
    """

    def __init__(self, database: Database, compute_digest: Callable[[str], str]) -> None:
        self._database = database
        self._digest = compute_digest
        self._lock = threading.Lock()
        self._cached: dict[str, Session] = {}  # by the digest of the secret; this store ends sessions here first

    def open(self, origin: SessionOrigin, moment: datetime) -> tuple[Session, str]:
        """Make a session; return it and its secret, which no one can read later.

        Raises:
            StoreError: it cannot be written.
        """
        secret = SESSION_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        session = Session(
            id=secrets.token_hex(_ID_BYTES),
            user=origin.user,
            kind=origin.kind,
            created_at=moment,
            used_at=moment,
            expires_at=moment + LIVES[origin.kind].whole,
            user_agent=origin.user_agent[:_LONGEST_AGENT],
            address=origin.address[:_LONGEST_ADDRESS],
            key=origin.key,
        )
        with self._database.write_transaction() as connection:
            _delete_ended(connection, moment)
            excess = self._list_oldest(connection, origin)
            for identity in excess:
                connection.execute(sa.delete(sessions).where(sessions.c.id == identity))
            row = {name: getattr(session, name) for name in Session.__slots__}
            values = row | {"kind": session.kind.value, "digest": self._digest(secret)}
            connection.execute(sa.insert(sessions).values(values))
        self._forget(excess)
        return session, secret

    def find(self, secret: str, moment: datetime) -> Session | None:
        """Return the session of a secret, and note its use; None when it has none, or that has ended.

        Raises:
            StoreError: the store does not answer.
        """
        if not secret.startswith(SESSION_PREFIX):
            return None
        digest = self._digest(secret)
        session = self._cached.get(digest) or self._read(digest)
        if session is None or session.has_ended(moment):
            return None
        if moment - session.used_at >= _USE_STEP:
            session = self._note_use(digest, session, moment)
        return session

    def list_open(self, moment: datetime, user: str | None = None) -> list[Session]:
        """Return the sessions that have not ended, of one user or of all, the newest first."""
        query = sa.select(sessions).order_by(sessions.c.created_at.desc(), sessions.c.id)
        with self._database.read_transaction() as connection:
            rows = connection.execute(query if user is None else query.where(sessions.c.user == user)).all()
        return [session for session in map(_read_row, rows) if not session.has_ended(moment)]

    def end(self, identity: str, user: str | None = None) -> bool:
        """End one session; return False when there is none, or when it is not one of the user."""
        condition = sessions.c.id == identity
        return self._delete(condition if user is None else condition & (sessions.c.user == user)) > 0

    def end_of_key(self, key: str) -> int:
        """End all sessions that a key has opened; return how many there were."""
        return self._delete(sessions.c.key == key)

    def end_of_provider(self, user: str) -> int:
        """End all sessions of a user that no key has opened; return how many there were."""
        return self._delete((sessions.c.user == user) & (sessions.c.key == ""))

    def end_all(self, user: str) -> int:
        """End all sessions of a user; return how many there were."""
        return self._delete(sessions.c.user == user)

    def note_check(self, identity: str, refresh: str | None, moment: datetime) -> None:
        """Store what the provider has given, and when it was asked.

        Args:
            identity: of the session.
            refresh: the sealed refresh token; None: the provider gave none.
            moment: of its answer.
        """
        changed = sa.update(sessions).where(sessions.c.id == identity).values(refresh=refresh, checked_at=moment)
        with self._database.write_transaction() as connection:
            connection.execute(changed)
        self._forget([identity])

    def _delete(self, condition: sa.ColumnElement[bool]) -> int:
        with self._database.write_transaction() as connection:
            ended = list(connection.execute(sa.select(sessions.c.id).where(condition)).scalars())
            connection.execute(sa.delete(sessions).where(condition))
        self._forget(ended)
        return len(ended)

    def _forget(self, ended: list[str]) -> None:
        with self._lock:
            for digest in [digest for digest, session in self._cached.items() if session.id in ended]:
                del self._cached[digest]

    def _read(self, digest: str) -> Session | None:
        """Read a session, and keep it. The lock spans both: a session that is ended meanwhile is not kept."""
        with self._lock:
            with self._database.read_transaction() as connection:
                row = connection.execute(sa.select(sessions).where(sessions.c.digest == digest)).one_or_none()
            if row is None:
                return None
            while len(self._cached) >= _MOST_CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[digest] = _read_row(row)
            return self._cached[digest]

    def _note_use(self, digest: str, session: Session, moment: datetime) -> Session:
        """Store the last use. A store that cannot write, as on a full disk, keeps no one from ending a job."""
        used = replace(session, used_at=moment)
        try:
            with self._database.write_transaction() as connection:
                connection.execute(sa.update(sessions).where(sessions.c.id == session.id).values(used_at=moment))
        except StoreError as error:
            log.warning("the last use of session %s is not stored: %s", session.id, error.message)
        with self._lock:
            if digest in self._cached:
                self._cached[digest] = used
        return used

    def _list_oldest(self, connection: sa.Connection, origin: SessionOrigin) -> list[str]:
        """Return the sessions that must end so that one more of this kind fits."""
        of_user = (sessions.c.user == origin.user) & (sessions.c.kind == origin.kind.value)
        query = sa.select(sessions.c.id).where(of_user).order_by(sessions.c.used_at.desc(), sessions.c.id)
        return list(connection.execute(query).scalars())[_MOST_OF_USER - 1 :]


def _delete_ended(connection: sa.Connection, moment: datetime) -> None:
    ended = [sessions.c.expires_at <= moment]
    ended += [
        (sessions.c.kind == kind.value) & (sessions.c.used_at <= moment - life.idle) for kind, life in LIVES.items()
    ]
    connection.execute(sa.delete(sessions).where(sa.or_(*ended)))


def _read_row(row: sa.Row[tuple[object, ...]]) -> Session:
    fields = {name: getattr(row, name) for name in Session.__slots__}
    return Session(**(fields | {"kind": SessionKind(fields["kind"])}))
