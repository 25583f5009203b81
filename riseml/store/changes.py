"""Find the experiments that have changed since an event, by the events in SQL."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from riseml.base.names import name_for_reader
from riseml.model import Caller
from riseml.store.database import Database
from riseml.store.schema import events, experiments
from riseml.store.visibility import select_visible


class ChangeLog:
    """Reads the order in which experiments changed. Ids of events only grow, and are never used twice."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find_last_event(self) -> int:
        """Return the id of the newest event; 0 before the first."""
        with self._database.read_transaction() as connection:
            return int(connection.execute(sa.select(sa.func.max(events.c.id))).scalar_one() or 0)

    def list_changed(self, after: int, most: int) -> tuple[int, ...]:
        """Return the keys of at most `most` experiments with events after the one with the id `after`."""
        query = sa.select(events.c.experiment_id).where(events.c.id > after).distinct().limit(most)
        with self._database.read_transaction() as connection:
            return tuple(connection.execute(query).scalars())

    def name_experiments(self, keys: Collection[int], caller: Caller) -> dict[int, str]:
        """Return the IDs of experiments that a caller sees, by their keys: `4`, `144.1`, `paul.4` of another user."""
        columns = (experiments.c[name] for name in ("id", "user", "number", "sub"))
        query = sa.select(*columns).where(experiments.c.id.in_(keys), select_visible(caller))
        with self._database.read_transaction() as connection:
            return {
                key: name_for_reader(caller.user, user, number, sub)
                for key, user, number, sub in connection.execute(query)
            }
