"""A table of what the server noticed about experiments, each kind once, in the order in which it noticed it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from riseml.spec.config.types import NotifySection
from riseml.store.codec import from_json
from riseml.store.database import Database
from riseml.store.schema import experiments

NOTIFY = experiments.c.plan["policy", "notify"]

_OF_EXPERIMENT = ("number", "sub", "user", "project", "team_project")


def read_notify(section: object) -> NotifySection | None:
    """Return the `notify` section of an experiment from its column `NOTIFY`; None: it has none."""
    return None if section is None else from_json(section, NotifySection)


class NotedTable:
    """Reads and writes one table, which has the columns `id`, `experiment_id` and `at`.

    Args:
        database: where the table is.
        kind: the column whose values an experiment has once each.
    """

    def __init__(self, database: Database, kind: sa.Column[str]) -> None:
        self._database = database
        self._kind = kind
        self._table = kind.table

    def list_kinds(self, experiment: int) -> frozenset[str]:
        """Return the kinds that are stored of an experiment."""
        query = sa.select(self._kind).where(self._table.c.experiment_id == experiment)
        with self._database.read_transaction() as connection:
            return frozenset(connection.execute(query).scalars())

    def add_row(self, experiment: int, at: datetime, values: Mapping[str, object]) -> None:
        """Store a row; the caller has checked that its kind is not stored yet."""
        row = {"experiment_id": experiment, "at": at, **values}
        with self._database.write_transaction() as connection:
            connection.execute(sa.insert(self._table).values(row))

    def find_last_before(self, moment: datetime) -> int:
        """Return the id of the last row before a moment; 0: there is none."""
        query = sa.select(sa.func.max(self._table.c.id)).where(self._table.c.at < moment)
        with self._database.read_transaction() as connection:
            return connection.execute(query).scalar() or 0

    def find_next(self, after: int) -> dict[str, Any] | None:
        """Return the first row after the one with an id, by column, with what a webhook says of its experiment; None:
        there is none.
        """
        query = (
            sa.select(self._table, *(experiments.c[name] for name in _OF_EXPERIMENT), NOTIFY.label("notify"))
            .join(experiments, experiments.c.id == self._table.c.experiment_id)
            .where(self._table.c.id > after)
            .order_by(self._table.c.id)
            .limit(1)
        )
        with self._database.read_transaction() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        values = {name: value for name, value in row.items() if name != "experiment_id"}
        return {**values, "experiment": row["experiment_id"], "notify": read_notify(row["notify"])}
