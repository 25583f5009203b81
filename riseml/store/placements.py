"""The times at which experiments had places, and what they held.

A row is written in the transaction of the decision that gives the place, and gets its end in that of the decision that
takes it back. So a killed server loses none and counts none twice, and usage is a sum over rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import sqlalchemy as sa

from riseml.base.records import dataclass
from riseml.control.decide import takes_place
from riseml.control.quotas import measure_plan
from riseml.control.usage import PlaceSpan, find_place_end
from riseml.model import Caller, Experiment
from riseml.store.database import Database
from riseml.store.schema import experiments, placements
from riseml.store.visibility import select_visible


@dataclass(frozen=True, slots=True)
class PlacementRecord:
    """One time at which an experiment had a place."""

    experiment: int  # its key in the store
    number: int
    sub: int | None  # within its set
    user: str
    project: str
    waited_since: datetime  # since when it had no place before
    span: PlaceSpan


def write_places(connection: sa.Connection, before: Experiment, after: Experiment, now: datetime) -> None:
    """Write the begin or the end of a place with the decision that causes it."""
    ended = find_place_end(before, after, now)
    if ended is not None:
        own = sa.and_(placements.c.experiment_id == after.id, placements.c.ended_at.is_(None))
        connection.execute(placements.update().where(own).values(ended_at=ended))
    if takes_place(before, after) and after.placed_at is not None:
        need = measure_plan(after.plan)
        connection.execute(
            placements.insert().values(
                experiment_id=after.id,
                placed_at=after.placed_at,
                waited_since=min(after.waits_since or after.created_at, after.placed_at),
                gpus=need.gpus,
                cpus=need.cpus,
                mem=need.mem,
            )
        )


class PlacementStore:
    """Reads the places of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load_ended(self, since: datetime) -> Iterable[tuple[str, PlaceSpan]]:
        """Return each place that has ended since a time, with its user."""
        columns = (experiments.c.user, placements.c.placed_at, placements.c.ended_at, placements.c.gpus)
        query = (
            sa.select(*columns, placements.c.cpus)
            .join(experiments, experiments.c.id == placements.c.experiment_id)
            .where(placements.c.ended_at >= since)
        )
        with self._database.read_transaction() as connection:
            rows = connection.execute(query).all()
        return [(row.user, PlaceSpan(row.placed_at, row.ended_at, row.gpus, row.cpus)) for row in rows]

    def load_since(self, since: datetime, caller: Caller) -> tuple[PlacementRecord, ...]:
        """Return the places that experiments have now, or had since a time, as far as a caller sees them, oldest
        first."""
        own = ("number", "sub", "user", "project")
        query = (
            sa.select(placements, *(experiments.c[name] for name in own))
            .join(experiments, experiments.c.id == placements.c.experiment_id)
            .where(sa.or_(placements.c.ended_at.is_(None), placements.c.ended_at >= since), select_visible(caller))
            .order_by(placements.c.placed_at, placements.c.experiment_id)
        )
        with self._database.read_transaction() as connection:
            rows = connection.execute(query).mappings().all()
        return tuple(
            PlacementRecord(
                experiment=row["experiment_id"],
                **{name: row[name] for name in own},
                waited_since=row["waited_since"],
                span=PlaceSpan(row["placed_at"], row["ended_at"], row["gpus"], row["cpus"]),
            )
            for row in rows
        )
