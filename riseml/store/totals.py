"""Numbers over the whole store: how many experiments are in each state, and how large the store is."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from riseml.base.states import State
from riseml.store.database import Database
from riseml.store.schema import experiments


class StoreTotals:
    """Reads the totals of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count_states(self) -> dict[State, int]:
        """Return how many experiments are in each state; each experiment of a set counts."""
        query = sa.select(experiments.c.state, sa.func.count()).group_by(experiments.c.state)
        with self._database.read_transaction() as connection:
            counts = {state: int(count) for state, count in connection.execute(query).all()}
        return {state: counts.get(state.value, 0) for state in State}

    def measure_size(self) -> int:
        """Return the bytes of the database: of SQLite's files, or what PostgreSQL says."""
        with self._database.read_transaction() as connection:
            if connection.dialect.name == "postgresql":
                return int(connection.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one())
            name = connection.engine.url.database
        paths = [Path(f"{name}{suffix}") for suffix in ("", "-wal")]
        return sum(path.stat().st_size for path in paths if path.exists())
