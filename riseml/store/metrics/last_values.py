"""The last values of one metric over many experiments, as the database finds them in what is saved of each.

The server saves counts every few seconds, so that the values of experiments that run may be as old as that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from riseml.store.database import Database
from riseml.store.schema import experiments, metric_tallies

MOST_NAMES = 1000
"""Names of metrics in one list."""


class LastValues:
    """Reads them from one database. Safe from many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_values(self, user: str, metric: str) -> Mapping[int, tuple[int, int | None, float | None]]:
        """Return number, sub and last value of each experiment of a user that has reported a metric, by its key.

        A value that is not a number is None.
        """
        with self._database.read_transaction() as connection:
            last = select_last_values(connection.dialect, metric).subquery()
            query = (
                sa.select(experiments.c.id, experiments.c.number, experiments.c.sub, last.c.last)
                .join(last, last.c.experiment_id == experiments.c.id)
                .where(experiments.c.user == user)
            )
            return {row.id: (row.number, row.sub, row.last) for row in connection.execute(query)}

    def list_names(self, user: str) -> tuple[str, ...]:
        """Return the names of the metrics that a user's experiments have reported, the most frequent first."""
        with self._database.read_transaction() as connection:
            rows, name, _ = _expand(connection.dialect)
            count = sa.func.count().label("count")
            query = (
                sa.select(name.label("name"), count)
                .select_from(rows)
                .join(experiments, experiments.c.id == metric_tallies.c.experiment_id)
                .where(experiments.c.user == user)
                .group_by(name)
                .order_by(count.desc(), name)
                .limit(MOST_NAMES)
            )
            return tuple(row.name for row in connection.execute(query))


def select_last_values(dialect: sa.Dialect, metric: str) -> sa.Select[Any]:
    """Return the query of `experiment_id` and `last`; NULL is a value that is not a number, or that is not finite."""
    rows, name, last = _expand(dialect)
    return sa.select(metric_tallies.c.experiment_id, last.label("last")).select_from(rows).where(name == metric)


def _expand(dialect: sa.Dialect) -> tuple[sa.FromClause, sa.ColumnElement[str], sa.ColumnElement[float]]:
    """Return the tallies with a row for each metric, its name, and its last value."""
    text = metric_tallies.c.last_values
    name = sa.column("key", sa.Text)
    value = sa.column("value", sa.Text)
    if dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import JSONB

        pairs = sa.func.jsonb_each_text(sa.cast(text, JSONB)).table_valued(name, value)
    else:
        pairs = sa.func.json_each(text).table_valued(name, value)
    return sa.join(metric_tallies, pairs, sa.true()), pairs.c.key, sa.cast(pairs.c.value, sa.Float(53))
