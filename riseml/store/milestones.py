"""Metrics that have reached a value of `train.notify`, each once, in the order in which the server noticed it."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from riseml.base.records import dataclass
from riseml.spec.config.types import NotifySection
from riseml.store.database import Database
from riseml.store.noted_table import NOTIFY, NotedTable, read_notify
from riseml.store.schema import experiments, milestones


@dataclass(frozen=True, slots=True)
class Milestone:
    """A metric of an experiment that has reached a value of `train.notify` for the first time."""

    id: int  # grows
    experiment: int  # key in the store
    number: int
    sub: int | None  # within its set
    user: str
    project: str
    notify: NotifySection | None  # names of the webhooks in the project's riseml.yml
    condition: str  # `accuracy > 0.95`
    value: float  # what was reported
    step: int | None
    at: datetime  # when the server noticed it
    team_project: str | None = None  # whose members see the experiment; None: it belongs to its user alone


class MilestoneStore:
    """Keeps milestones in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._noted = NotedTable(database, milestones.c.condition)

    def find_notify(self, experiment: int) -> NotifySection | None:
        """Return the `notify` section of an experiment; None: it has none, or there is no such experiment."""
        query = sa.select(NOTIFY).where(experiments.c.id == experiment)
        with self._database.single_read() as connection:
            return read_notify(connection.execute(query).scalar())

    def list_conditions(self, experiment: int) -> frozenset[str]:
        """Return the conditions that an experiment has met."""
        return self._noted.list_kinds(experiment)

    def add_milestone(self, experiment: int, condition: str, value: float, step: int | None, at: datetime) -> None:
        """Store that an experiment has met a condition; the caller has checked that it is not stored yet."""
        self._noted.add_row(experiment, at, {"condition": condition, "value": value, "step": step})

    def find_last_before(self, moment: datetime) -> int:
        """Return the last milestone before a moment; 0: there is none."""
        return self._noted.find_last_before(moment)

    def find_next(self, after: int) -> Milestone | None:
        """Return the first milestone after another one; None: there is none."""
        values = self._noted.find_next(after)
        return None if values is None else Milestone(**values)
