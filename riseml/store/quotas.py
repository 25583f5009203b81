"""The quotas that an administrator has set, and the counts by which a submission is accepted or refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from riseml.base.states import TERMINAL
from riseml.control.quotas import Account, AccountKind, OwnQuota
from riseml.store.codec import from_json, to_json
from riseml.store.database import Database
from riseml.store.schema import experiments, quotas, sets

_ENDED = sorted(state.value for state in TERMINAL)


class QuotaStore:
    """The quotas in one database. Safe from many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> Mapping[Account, OwnQuota]:
        """Return the quotas of all accounts that have their own."""
        with self._database.read_transaction() as connection:
            return select_quotas(connection)

    def count(self, account: Account) -> tuple[int, list[str]]:
        """Return how many experiments of an account wait, and the digests of the states of its projects."""
        with self._database.read_transaction() as connection:
            return count_waiting(connection, account), list_snapshots(connection, account)

    def list_open_users(self) -> list[str]:
        """Return the users with experiments that have not ended."""
        query = sa.select(experiments.c.user).where(experiments.c.closed.is_(False)).distinct()
        with self._database.read_transaction() as connection:
            return list(connection.execute(query).scalars())

    def change(
        self,
        account: Account,
        limits: Mapping[str, float | None],
        defaults: Iterable[str] = (),
        weight: float | None = None,
    ) -> OwnQuota:
        """Change the quota of an account, and return it. The same change again changes nothing.

        Args:
            account: whose.
            limits: the values to set, by the field of QuotaLimits; None: no limit.
            defaults: the fields that get the values of server.yml again.
            weight: of a project; None: as it is.
        """
        with self._database.write_transaction() as connection:
            before = select_quotas(connection).get(account, OwnQuota())
            limits_before = {name: limit for name, limit in before.limits.items() if name not in frozenset(defaults)}
            after = OwnQuota({**limits_before, **limits}, before.weight if weight is None else weight)
            if after != before:
                own = sa.and_(quotas.c.kind == account.kind.value, quotas.c.name == account.name)
                connection.execute(quotas.delete().where(own))
                row = {"kind": account.kind.value, "name": account.name, "record": to_json(after)}
                connection.execute(quotas.insert().values(**row))
        return after


def select_quotas(connection: sa.Connection) -> dict[Account, OwnQuota]:
    """Return the quotas of all accounts that have their own."""
    rows = connection.execute(sa.select(quotas)).all()
    return {Account(AccountKind(row.kind), row.name): from_json(row.record, OwnQuota) for row in rows}


def belongs_to(account: Account) -> sa.ColumnElement[bool]:
    """Return the condition of the experiments that count for an account."""
    return (experiments.c.user if account.kind is AccountKind.USER else experiments.c.team_project) == account.name


def count_waiting(connection: sa.Connection, account: Account) -> int:
    """Return how many experiments of an account wait, or may wait before a user submits another one.

    A search makes its trials later. It counts as many as run at the same time, less those that have a place.
    """
    searches = sa.and_(sets.c.search.isnot(None), sets.c.search_end.is_(None))
    still_open = (experiments.c.closed.is_(False), experiments.c.state.not_in(_ENDED))
    query = (
        sa.select(
            sa.case((searches, experiments.c.set_id)).label("search"),
            sa.func.max(sets.c.concurrency),
            sa.func.count(experiments.c.placed_at),
            sa.func.count(),
        )
        .outerjoin(sets, experiments.c.set_id == sets.c.id)
        .where(belongs_to(account), *still_open)
        .group_by(sa.case((searches, experiments.c.set_id)))
    )
    counts: dict[int | None, int] = {}
    for search, concurrency, placed, members in connection.execute(query).all():
        counts[search] = int(members if search is None else max(members, concurrency)) - int(placed)
    idle = sa.select(sets.c.id, sets.c.concurrency).where(searches, _owns_set(account))
    for search, concurrency in connection.execute(idle).all():
        counts.setdefault(search, int(concurrency))  # none of its trials is open now
    return sum(counts.values())


def _owns_set(account: Account) -> sa.ColumnElement[bool]:
    first = sa.select(experiments.c.id).where(experiments.c.set_id == sets.c.id, belongs_to(account))
    return sets.c.user == account.name if account.kind is AccountKind.USER else first.exists()


def list_snapshots(connection: sa.Connection, account: Account) -> list[str]:
    """Return the digests of the project states of an account's experiments, each once."""
    query = sa.select(experiments.c.snapshot).where(belongs_to(account), experiments.c.snapshot != "").distinct()
    return list(connection.execute(query).scalars())
