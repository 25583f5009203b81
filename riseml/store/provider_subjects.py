"""Which person of the organisation's provider each user of a team's server is, in one database.

The provider may give a name to another person one day, but never a subject. So a user belongs to the subject of their
first login from then on.
"""

from __future__ import annotations

import sqlalchemy as sa

from riseml.base.accounts import check_account_name
from riseml.base.errors import Conflict, NotFound
from riseml.store.accounts import User
from riseml.store.database import Database
from riseml.store.schema import provider_subjects, users


class ProviderSubjects:
    """The subjects in one database. Safe from many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find_user(self, issuer: str, subject: str) -> str | None:
        """Return the name of the user that a person is; None: none yet."""
        with self._database.read_transaction() as connection:
            return _find_user(connection, issuer, subject)

    def find_subject(self, user: str) -> str | None:
        """Return the subject of a user; None: a user without one."""
        query = sa.select(provider_subjects.c.subject).where(provider_subjects.c.user == user)
        with self._database.read_transaction() as connection:
            return connection.execute(query).scalar()

    def add_user(self, user: User, issuer: str, subject: str) -> None:
        """Store a new user without a key, who is this person.

        Raises:
            UsageError: the name is not allowed.
            Conflict: there is a user with this name, or the person is another user.
        """
        check_account_name("user", user.name)
        with self._database.write_transaction() as connection:
            if connection.execute(sa.select(users.c.name).where(users.c.name == user.name)).first() is not None:
                raise Conflict(f"there is a user {user.name} already", f"`riseml user display {user.name}` shows them")
            values = {column.name: getattr(user, column.name) for column in users.c}
            connection.execute(users.insert().values(values | {"role": user.role.value}))
            _bind(connection, user.name, issuer, subject)

    def link_user(self, user: str, issuer: str, subject: str) -> None:
        """Say which person a user is whom an admin has made. The same again changes nothing.

        Raises:
            NotFound: there is no such user.
            Conflict: the person is another user.
        """
        with self._database.write_transaction() as connection:
            if connection.execute(sa.select(users.c.name).where(users.c.name == user)).first() is None:
                raise NotFound(f"there is no user {user}", "`riseml user list` shows them")
            connection.execute(provider_subjects.delete().where(provider_subjects.c.user == user))
            _bind(connection, user, issuer, subject)


def _find_user(connection: sa.Connection, issuer: str, subject: str) -> str | None:
    person = sa.and_(provider_subjects.c.issuer == issuer, provider_subjects.c.subject == subject)
    return connection.execute(sa.select(provider_subjects.c.user).where(person)).scalar()


def _bind(connection: sa.Connection, user: str, issuer: str, subject: str) -> None:
    other = _find_user(connection, issuer, subject)
    if other is not None:
        raise Conflict(f"this person of the provider is the user {other}", f"`riseml user display {other}` shows them")
    connection.execute(provider_subjects.insert().values(issuer=issuer, subject=subject, user=user))
