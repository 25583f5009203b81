"""The last values of one metric over many experiments, as the database finds them in what is saved of each.

The server saves counts every few seconds, so that the values of experiments that run may be as old as that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from riseml.model import Caller
from riseml.store.database import Database
from riseml.store.schema import experiments, metric_tallies
from riseml.store.visibility import select_visible

MOST_NAMES = 1000
"""Names of metrics in one list."""

_IDS_PER_QUERY = 1000


class LastValues:
    """Reads them from one database. Safe from many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_values(
        self, metric: str, caller: Caller, *, of_all: bool
    ) -> list[tuple[str, int, int | None, float | None]]:
        """Return user, number, sub and last value of each experiment that has reported a metric.

        A value that is not a number is None.

        Args:
            metric: its name.
            caller: the user of the request.
            of_all: of all experiments that they see; else of their own.
        """
        with self._database.read_transaction() as connection:
            last = select_last_values(connection.dialect, metric).subquery()
            query = (
                sa.select(experiments.c.user, experiments.c.number, experiments.c.sub, last.c.last)
                .join(last, last.c.experiment_id == experiments.c.id)
                .where(_choose(caller, of_all=of_all))
            )
            return [(row.user, row.number, row.sub, row.last) for row in connection.execute(query)]

    def read_values_of(self, ids: Sequence[int]) -> Mapping[int, Mapping[str, float | None]]:
        """Return the last value of each metric of these experiments, by their keys, in the order of the first reports.

        A value that is not a number is None.
        """
        key = metric_tallies.c.experiment_id
        query = sa.select(key, metric_tallies.c.last_values)
        keys = sorted(set(ids))
        texts: dict[int, str] = {}
        with self._database.read_transaction() as connection:
            for start in range(0, len(keys), _IDS_PER_QUERY):
                some = keys[start : start + _IDS_PER_QUERY]
                # The ids of a page of a list mostly follow each other, and a range takes half the time of a list.
                is_dense = some[-1] - some[0] < 2 * len(some)
                condition = key.between(some[0], some[-1]) if is_dense else key.in_(some)
                texts |= {row[0]: row[1] for row in connection.execute(query.where(condition))}
        return {identity: json.loads(texts[identity]) for identity in keys if identity in texts}

    def list_names(self, caller: Caller, *, of_all: bool) -> tuple[str, ...]:
        """Return the names of the metrics that experiments have reported, the most frequent first: those of all that a
        caller sees, or of their own."""
        with self._database.read_transaction() as connection:
            rows, name, _ = _expand(connection.dialect)
            count = sa.func.count().label("count")
            query = (
                sa.select(name.label("name"), count)
                .select_from(rows)
                .join(experiments, experiments.c.id == metric_tallies.c.experiment_id)
                .where(_choose(caller, of_all=of_all))
                .group_by(name)
                .order_by(count.desc(), name)
                .limit(MOST_NAMES)
            )
            return tuple(row.name for row in connection.execute(query))


def _choose(caller: Caller, *, of_all: bool) -> sa.ColumnElement[bool]:
    """Return the condition of the experiments that a caller sees: all of them, or their own."""
    own = experiments.c.user == caller.user
    if of_all:
        return select_visible(caller)
    return own if caller.project is None else sa.and_(own, select_visible(caller))


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
