"""The users of a team's server and their API keys, in one database.

A user is never removed, and no name is given away again: experiments keep the name of their user. The store has a
digest of each key (`key_digests`), its last characters, and no key.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from riseml.base.accounts import DEFAULT_KEY_DAYS, MOST_KEY_DAYS, check_account_name, check_email, check_ids
from riseml.base.api_keys import SHOWN_CHARACTERS, make_key
from riseml.base.errors import Conflict, NotFound, Refused, UsageError
from riseml.base.records import dataclass
from riseml.base.roles import Role, Scope
from riseml.store.database import Database
from riseml.store.key_digests import KeyDigests
from riseml.store.schema import api_keys, team_projects, users
from riseml.store.team_projects import select_memberships

SERVER_ROLES = (Role.VIEWER, Role.MEMBER, Role.ADMIN)
"""What a user of the server may be: MAINTAINER is a role inside a project."""

MOST_KEYS = 100
"""How many keys of one user may be valid at the same time."""

_LONGEST_KEY_NAME = 64  # characters
_ID = 5  # random bytes of a key's id


@dataclass(frozen=True, slots=True)
class User:
    """One user of a team's server."""

    name: str
    role: Role  # VIEWER, MEMBER or ADMIN
    created_at: datetime
    uid: int | None = None  # of their jobs and outputs; None: server.yml says it, or nobody does
    gid: int | None = None
    disabled: bool = False  # no key of theirs is taken
    email: str = ""


@dataclass(frozen=True, slots=True)
class UserChange:
    """What an admin changes about a user; None leaves a value as it is."""

    role: Role | None = None
    uid: int | None = None
    gid: int | None = None  # None with a uid: the same number
    disabled: bool | None = None
    email: str | None = None
    shared_uid: bool = False  # another user may have the same uid


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """What a new key may do."""

    user: str
    scope: Scope = Scope.ADMIN
    project: str | None = None  # the team project to which it is bound
    days: int = DEFAULT_KEY_DAYS  # until it expires
    name: str = ""  # what it is for, in the words of its user


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One API key, without the key."""

    id: str
    user: str
    tail: str  # its last characters
    name: str
    scope: Scope
    project: str | None
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None  # within a minute; None: never
    revoked_at: datetime | None

    def is_valid(self, moment: datetime) -> bool:
        """Return True when the server takes it, as long as its user is not disabled."""
        return self.revoked_at is None and moment < self.expires_at


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made: the only record with the key itself."""

    key: ApiKey
    secret: str  # the key, which nobody can read again


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """A key, its user, and the projects of the user."""

    key: ApiKey
    user: User
    projects: tuple[tuple[str, Role], ...]

    def is_valid(self, moment: datetime) -> bool:
        """Return True when the server takes the key."""
        return self.key.is_valid(moment) and not self.user.disabled


class AccountStore:
    """The users and keys in one database. Safe from many threads.

    Example:
        accounts = AccountStore(database, KeyDigests(home))
        print(accounts.add_first_admin("paul", now()).secret)
    """

    def __init__(self, database: Database, digests: KeyDigests) -> None:
        self._database = database
        self._digests = digests

    def add_first_admin(self, name: str, moment: datetime) -> NewKey:
        """Make the first user of a new team's server, who is an admin, and their key.

        Raises:
            UsageError: the name is not allowed.
            Conflict: the server has users already.
        """
        user = User(check_account_name("user", name), Role.ADMIN, moment)
        with self._database.write_transaction() as connection:
            if connection.execute(sa.select(users.c.name).limit(1)).first() is not None:
                raise Conflict("this server has users already", "an admin makes further ones: `riseml user create`")
            connection.execute(users.insert().values(_to_user_values(user)))
            return self._insert_key(connection, KeyRequest(name, name="first key"), moment)

    def add_user(self, user: User, *, shared_uid: bool = False) -> NewKey:
        """Store a new user, and make their first key.

        Args:
            user: without a gid, it is the number of the uid.
            shared_uid: another user may have the same uid.

        Raises:
            UsageError: a value is not allowed.
            Conflict: there is a user with this name or uid.
        """
        check_account_name("user", user.name)
        user = _check_user(replace(user, gid=user.uid if user.gid is None else user.gid))
        with self._database.write_transaction() as connection:
            if _select_user(connection, user.name) is not None:
                raise Conflict(f"there is a user {user.name} already", f"`riseml user display {user.name}` shows them")
            if not shared_uid:
                _refuse_shared_uid(connection, user)
            connection.execute(users.insert().values(_to_user_values(user)))
            return self._insert_key(connection, KeyRequest(user.name, name="first key"), user.created_at)

    def change_user(self, name: str, change: UserChange) -> User:
        """Change a user, and return them. The same change again changes nothing.

        Raises:
            NotFound: there is no such user.
            UsageError: a value is not allowed.
            Conflict: another user has the uid; or no admin would be left.
        """
        with self._database.write_transaction() as connection:
            before = _find_user(connection, name)
            after = _check_user(_apply_change(before, change))
            if change.uid is not None and not change.shared_uid:
                _refuse_shared_uid(connection, after)
            if _is_active_admin(before) and not _is_active_admin(after):
                _refuse_last_admin(connection, name)
            if after != before:
                connection.execute(users.update().where(users.c.name == name).values(_to_user_values(after)))
        return after

    def load_user(self, name: str) -> User:
        """Return a user.

        Raises:
            NotFound: there is no such user.
        """
        with self._database.read_transaction() as connection:
            return _find_user(connection, name)

    def list_users(self) -> list[User]:
        """Return all users, by name."""
        with self._database.read_transaction() as connection:
            rows = connection.execute(sa.select(users).order_by(users.c.name)).mappings()
            return [_to_user(row) for row in rows]

    def add_key(self, request: KeyRequest, moment: datetime) -> NewKey:
        """Make a key.

        Raises:
            UsageError: a value is not allowed.
            NotFound: there is no such user or project.
            Refused: the user has too many keys.
        """
        _check_key_request(request)
        with self._database.write_transaction() as connection:
            _find_user(connection, request.user)
            if request.project is not None:
                query = sa.select(team_projects.c.name).where(team_projects.c.name == request.project)
                if connection.execute(query).first() is None:
                    raise NotFound(f"there is no project {request.project}", "`riseml project list` shows them")
            return self._insert_key(connection, request, moment)

    def list_keys(self, user: str | None = None) -> list[ApiKey]:
        """Return the keys of a user, or of all users, the oldest first; expired and revoked ones, too."""
        query = sa.select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id)
        if user is not None:
            query = query.where(api_keys.c.user == user)
        with self._database.read_transaction() as connection:
            return [_to_key(row) for row in connection.execute(query).mappings()]

    def load_key(self, identity: str) -> ApiKey:
        """Return a key by its id.

        Raises:
            NotFound: there is no such key.
        """
        with self._database.read_transaction() as connection:
            return _find_key(connection, identity)

    def revoke_key(self, identity: str, moment: datetime) -> ApiKey:
        """End a key, and return it. A revoked key stays revoked.

        Raises:
            NotFound: there is no such key.
        """
        with self._database.write_transaction() as connection:
            key = _find_key(connection, identity)
            if key.revoked_at is not None:
                return key
            connection.execute(api_keys.update().where(api_keys.c.id == identity).values(revoked_at=moment))
        return replace(key, revoked_at=moment)

    def find_holder(self, secret: str) -> KeyHolder | None:
        """Return whose key a text is, also when the key is revoked or expired; None: it is no key of this server.

        Every text takes the same two queries, so that the time of the answer does not say what is wrong with it.
        """
        digest = self._digests.compute_digest(secret)
        holder = sa.select(api_keys, *(column.label(f"user_{column.name}") for column in users.c)).join(
            users, users.c.name == api_keys.c.user
        )
        with self._database.read_transaction() as connection:
            row = connection.execute(holder.where(api_keys.c.digest == digest)).mappings().first()
            projects = select_memberships(connection, "" if row is None else row["user"])
        if row is None or not secrets.compare_digest(row["digest"], digest):
            return None
        user = _to_user({column.name: row[f"user_{column.name}"] for column in users.c})
        return KeyHolder(_to_key(row), user, projects)

    def note_uses(self, moments: Mapping[str, datetime]) -> None:
        """Store when keys were used last, by their ids."""
        with self._database.write_transaction() as connection:
            for identity, moment in moments.items():
                connection.execute(api_keys.update().where(api_keys.c.id == identity).values(used_at=moment))

    def _insert_key(self, connection: sa.Connection, request: KeyRequest, moment: datetime) -> NewKey:
        valid_keys = sa.select(sa.func.count()).where(
            api_keys.c.user == request.user, api_keys.c.revoked_at.is_(None), api_keys.c.expires_at > moment
        )
        if connection.execute(valid_keys).scalar_one() >= MOST_KEYS:
            raise Refused(
                f"{request.user} has {MOST_KEYS} valid keys, and no user may have more",
                "`riseml key revoke ID` ends one",
            )
        secret = make_key()
        key = ApiKey(
            id=secrets.token_hex(_ID),
            user=request.user,
            tail=secret[-SHOWN_CHARACTERS:],
            name=request.name,
            scope=request.scope,
            project=request.project,
            created_at=moment,
            expires_at=moment + timedelta(days=request.days),
            used_at=None,
            revoked_at=None,
        )
        values = {column.name: getattr(key, column.name) for column in api_keys.c if column.name != "digest"}
        values |= {"scope": key.scope.value, "digest": self._digests.compute_digest(secret)}
        connection.execute(api_keys.insert().values(values))
        return NewKey(key, secret)


def _check_user(user: User) -> User:
    if user.role not in SERVER_ROLES:
        raise UsageError(
            f"{user.role.value} is not a role of a user", "a user is viewer, member or admin; projects have maintainers"
        )
    check_email(user.email)
    check_ids(user.uid, user.gid)
    if user.uid is None and user.gid is not None:
        raise UsageError("a gid without a uid says nothing", "give both, or the uid alone")
    return user


def _check_key_request(request: KeyRequest) -> None:
    if not 1 <= request.days <= MOST_KEY_DAYS:
        raise UsageError(
            f"a key cannot be valid for {request.days} days",
            f"give 1 to {MOST_KEY_DAYS} days; {DEFAULT_KEY_DAYS} is usual",
        )
    if len(request.name) > _LONGEST_KEY_NAME or not request.name.isprintable():
        raise UsageError(
            f"{request.name[:80]!r} is not a name for a key", f"give at most {_LONGEST_KEY_NAME} characters in one line"
        )


def _apply_change(user: User, change: UserChange) -> User:
    uid = user.uid if change.uid is None else change.uid
    kept_gid = user.gid if change.uid is None else uid
    return replace(
        user,
        role=change.role or user.role,
        uid=uid,
        gid=kept_gid if change.gid is None else change.gid,
        disabled=user.disabled if change.disabled is None else change.disabled,
        email=user.email if change.email is None else change.email,
    )


def _is_active_admin(user: User) -> bool:
    return user.role is Role.ADMIN and not user.disabled


def _refuse_shared_uid(connection: sa.Connection, user: User) -> None:
    if user.uid is None:
        return
    query = sa.select(users.c.name).where(users.c.uid == user.uid, users.c.name != user.name).order_by(users.c.name)
    other = connection.execute(query.limit(1)).scalar()
    if other is not None:
        raise Conflict(
            f"{other} has the uid {user.uid}: {user.name} could read and change the outputs of {other}",
            "give another uid; or say --shared-uid when that is meant",
        )


def _refuse_last_admin(connection: sa.Connection, name: str) -> None:
    query = sa.select(users.c.name).where(
        users.c.role == Role.ADMIN.value, sa.not_(users.c.disabled), users.c.name != name
    )
    if connection.execute(query.limit(1)).first() is None:
        raise Conflict(
            f"{name} is the only admin of this server", "make another user an admin first: `riseml user update`"
        )


def _select_user(connection: sa.Connection, name: str) -> User | None:
    row = connection.execute(sa.select(users).where(users.c.name == name)).mappings().first()
    return None if row is None else _to_user(row)


def _find_user(connection: sa.Connection, name: str) -> User:
    user = _select_user(connection, name)
    if user is None:
        raise NotFound(f"there is no user {name}", "`riseml user list` shows them")
    return user


def _find_key(connection: sa.Connection, identity: str) -> ApiKey:
    row = connection.execute(sa.select(api_keys).where(api_keys.c.id == identity)).mappings().first()
    if row is None:
        raise NotFound(f"there is no key {identity}", "`riseml key list` shows yours")
    return _to_key(row)


def _to_user_values(user: User) -> dict[str, Any]:
    return {column.name: getattr(user, column.name) for column in users.c} | {"role": user.role.value}


def _to_user(row: Mapping[Any, Any]) -> User:
    values = {column.name: row[column.name] for column in users.c}
    return User(**values | {"role": Role(row["role"])})


def _to_key(row: Mapping[Any, Any]) -> ApiKey:
    values = {column.name: row[column.name] for column in api_keys.c if column.name != "digest"}
    return ApiKey(**values | {"scope": Scope(row["scope"])})
