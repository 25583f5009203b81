"""Whose session came with a request: of a browser, or of a command that has logged in at the provider.

A session that a key has opened may do what the key may, and ends with it. A session that the provider has opened may do
all that its user may. What the store says about users and keys is remembered for two seconds, as for keys.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from riseml.base.api_keys import SESSION_PREFIX
from riseml.base.errors import NotFound
from riseml.base.records import dataclass
from riseml.base.roles import Scope
from riseml.model import Caller, Owner
from riseml.server.gate.key_authenticator import bind_rights
from riseml.server.gate.key_gate import Authenticator
from riseml.store.accounts import AccountStore, ApiKey, User
from riseml.store.sessions import Session, SessionStore
from riseml.store.team_projects import TeamProjectStore

_REMEMBERED = 2.0  # seconds for which the rights of a session are taken without a look into the store
_MOST_REMEMBERED = 10_000  # sessions


@dataclass(frozen=True, slots=True)
class SessionParts:
    """What says who a session is."""

    sessions: SessionStore
    accounts: AccountStore
    projects: TeamProjectStore
    find_owner: Callable[[User], Owner]  # returns the uid and gid of a user's jobs
    now: Callable[[], datetime]
    clock: Callable[[], float] = time.monotonic  # seconds, from any beginning
    is_admitted: Callable[[Session, str], bool] = lambda session, secret: (
        True
    )  # returns False when the provider says so


class SessionAuthenticator:
    """Finds the callers of sessions, and of keys. Safe from many threads.

    Args:
        parts: say who a session is.
        keys: finds the callers of keys, and answers for texts that are neither.
    """

    def __init__(self, parts: SessionParts, keys: Authenticator) -> None:
        self._parts = parts
        self._keys = keys
        self._lock = threading.Lock()
        self._remembered: dict[str, tuple[Caller, float]] = {}  # by session, and when the store said so

    def find_caller(self, token: str, address: str) -> Caller:
        """Return whose session or key this is.

        Args:
            token: as the client has sent it.
            address: of the client; empty: no failure is counted.

        Raises:
            Unauthenticated: nobody's, or it may not be used any more.
            RisemlError: the address has tried too many, or the store does not answer.
        """
        session = self._parts.sessions.find(token, self._parts.now()) if token.startswith(SESSION_PREFIX) else None
        is_admitted = session is not None and self._parts.is_admitted(session, token)
        caller = self._find_rights(session) if session is not None and is_admitted else None
        if session is None or caller is None:
            return self._keys.find_caller(token, address)
        return replace(caller, key=session.id, address=address)

    def forget_looks(self) -> None:
        """Ask the store about every session again from now on: users, keys or projects have changed."""
        with self._lock:
            self._remembered.clear()

    def _find_rights(self, session: Session) -> Caller | None:
        """Return what a session may do; None: its key or its user may not be used any more."""
        with self._lock:
            caller, at = self._remembered.get(session.id, (None, 0.0))
        if caller is not None and self._parts.clock() - at < _REMEMBERED:
            return caller
        at = self._parts.clock()
        caller = self._read_rights(session)
        with self._lock:
            self._remembered.pop(session.id, None)
            if caller is not None:
                self._remembered[session.id] = caller, at
            while len(self._remembered) > _MOST_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
        return caller

    def _read_rights(self, session: Session) -> Caller | None:
        accounts = self._parts.accounts
        try:
            user = accounts.load_user(session.user)
            key = accounts.load_key(session.key) if session.key else None
        except NotFound:
            return None
        if user.disabled or not (key is None or self._is_usable(key, session)):
            return None
        memberships = self._parts.projects.list_memberships(user.name)
        role, projects = bind_rights(user.role, memberships, None if key is None else key.project)
        return Caller(
            owner=self._parts.find_owner(user),
            role=role,
            scope=Scope.ADMIN if key is None else key.scope,
            projects=projects,
            project=None if key is None else key.project,
        )

    def _is_usable(self, key: ApiKey, session: Session) -> bool:
        return key.user == session.user and key.is_valid(self._parts.now())
