"""Whose key came with a request. A key that was looked up is remembered for two seconds, and then looked up again.

Keys that are unknown, malformed, revoked or expired, and those of disabled users, get one answer after the same work.
An address with ten failures within a minute has to wait: all its keys that have not let it in before are refused
without a look. So the other users of a shared address go on.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from riseml.base.errors import RisemlError, TooManyAttempts, Unauthenticated
from riseml.base.records import dataclass
from riseml.base.roles import Role
from riseml.model import Caller, Owner
from riseml.server.gate.failed_attempts import FailedAttempts, find_network
from riseml.store.accounts import AccountStore, KeyHolder, User

_REMEMBERED = 2.0  # seconds for which a key is taken without a look into the store
_USE_PERIOD = 60.0  # seconds between two times that last uses are stored
_ESTABLISHED = 3600.0  # seconds for which a key that an address used may go on while the address has to wait
_MOST_REMEMBERED = 10_000  # keys

log = logging.getLogger(__name__)

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _Look:
    """What the store has said about a key."""

    holder: KeyHolder
    owner: Owner
    at: float  # by the clock


class KeyAuthenticator:
    """Finds the callers of keys. Safe from many threads.

    Args:
        accounts: has the users and keys.
        find_owner: returns the uid and gid of a user's jobs.
        now: returns the time of day.
        clock: seconds, from any beginning.
    """

    def __init__(
        self,
        accounts: AccountStore,
        find_owner: Callable[[User], Owner],
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._accounts = accounts
        self._find_owner = find_owner
        self._now = now
        self._clock = clock
        self._lock = threading.Lock()
        self._first_looks = threading.Lock()  # one at a time, so that no failure is missed in the count
        self._looks: dict[bytes, _Look] = {}
        self._generation = 0  # grows when accounts change: a look that began earlier is not remembered
        self._established: dict[tuple[bytes, str], float] = {}  # when a key was last taken from a network
        self._failures = FailedAttempts(clock)
        self._uses: dict[str, datetime] = {}  # of keys, by id, that are not stored yet
        self._stored_at = -math.inf

    def find_caller(self, token: str, address: str) -> Caller:
        """Return whose key this is.

        Args:
            token: the key as the client has sent it.
            address: of the client; empty when the gate asks again about a request that is open: no failure is counted.

        Raises:
            Unauthenticated: it is not a key, or not valid any more.
            TooManyAttempts: too many keys from this address were not valid.
            StoreError: the store does not answer.
        """
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        look = self._recall(digest)
        if look is None:
            look = self._look_up(token, digest, find_network(address) if address else "")
            self._store_due_uses()
        return _make_caller(look, address)

    def forget_looks(self) -> None:
        """Look every key up again from now on: users, keys or projects have changed."""
        with self._lock:
            self._generation += 1
            self._looks.clear()

    def _recall(self, digest: bytes) -> _Look | None:
        moment = self._now()
        with self._lock:
            look = self._looks.get(digest)
            if look is None or self._clock() - look.at >= _REMEMBERED or not look.holder.is_valid(moment):
                return None
            self._uses[look.holder.key.id] = moment
            return look

    def _look_up(self, token: str, digest: bytes, network: str) -> _Look:
        """Ask the store about a key."""
        place = (digest, network)
        with self._lock:
            is_established = not network or self._clock() - self._established.get(place, -math.inf) < _ESTABLISHED
        if is_established:
            return self._ask_store(token, place)
        with self._first_looks:
            with self._lock:
                wait = self._failures.find_wait(network)
            if wait is not None:
                seconds = math.ceil(wait)
                raise TooManyAttempts(
                    "too many keys from this address were not valid",
                    f"wait {seconds} s, and try again with a valid key",
                    retry_after=seconds,
                )
            return self._ask_store(token, place)

    def _ask_store(self, token: str, place: tuple[bytes, str]) -> _Look:
        digest, network = place
        with self._lock:
            generation = self._generation
        holder = self._accounts.find_holder(token)
        moment = self._now()
        if holder is None or not holder.is_valid(moment):
            with self._lock:
                self._looks.pop(digest, None)
                self._established.pop(place, None)
                if network:
                    self._failures.note_failure(network)
            raise Unauthenticated("this key is not valid", "`riseml login` takes another one; an admin can make one")
        look = _Look(holder, self._find_owner(holder.user), self._clock())
        with self._lock:
            if generation == self._generation:
                _remember(self._looks, digest, look)
            if network:
                _remember(self._established, place, look.at)
            self._uses[holder.key.id] = moment
        return look

    def store_uses(self) -> None:
        """Store when keys were used last, so that a list of keys says it. A store that is full or locked does not hold
        up the request.
        """
        with self._lock:
            self._stored_at = self._clock()
            uses = self._uses
            self._uses = {}
        try:
            if uses:
                self._accounts.note_uses(uses)
        except RisemlError as error:
            log.warning("the last uses of %d keys are not stored: %s", len(uses), error.message)

    def _store_due_uses(self) -> None:
        """Store last uses at most once a minute."""
        with self._lock:
            is_due = bool(self._uses) and self._clock() - self._stored_at >= _USE_PERIOD
        if is_due:
            self.store_uses()


def _remember(values: dict[Key, Value], key: Key, value: Value) -> None:
    """Keep a value as the newest, and forget the oldest one of too many."""
    values.pop(key, None)
    values[key] = value
    if len(values) > _MOST_REMEMBERED:
        del values[next(iter(values))]


def bind_rights(
    role: Role, projects: tuple[tuple[str, Role], ...], bound: str | None
) -> tuple[Role, tuple[tuple[str, Role], ...]]:
    """Return the role and the projects that are left of those of a user by a key; `bound`: its project; None: all."""
    if bound is None:
        return role, projects
    if role is Role.ADMIN:
        return Role.MEMBER, ((bound, Role.MAINTAINER),)
    return role, tuple((name, its_role) for name, its_role in projects if name == bound)


def _make_caller(look: _Look, address: str) -> Caller:
    """Return who calls. A key that is bound to a project opens no other one, and nothing that is an admin's."""
    holder = look.holder
    bound = holder.key.project
    role, projects = bind_rights(holder.user.role, holder.projects, bound)
    return Caller(
        owner=look.owner,
        role=role,
        scope=holder.key.scope,
        projects=projects,
        project=bound,
        key=holder.key.id,
        address=address,
    )
