"""Metrics that have reached a value of `train.notify`, each once, in the order in which the server noticed it."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from riseml.base.records import dataclass
from riseml.spec.config.types import NotifySection
from riseml.store.codec import from_json
from riseml.store.database import Database
from riseml.store.schema import experiments, milestones

_NOTIFY = experiments.c.plan["policy", "notify"]


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

    def find_notify(self, experiment: int) -> NotifySection | None:
        """Return the `notify` section of an experiment; None: it has none, or there is no such experiment."""
        query = sa.select(_NOTIFY).where(experiments.c.id == experiment)
        with self._database.single_read() as connection:
            return _read_notify(connection.execute(query).scalar())

    def list_conditions(self, experiment: int) -> frozenset[str]:
        """Return the conditions that an experiment has met."""
        query = sa.select(milestones.c.condition).where(milestones.c.experiment_id == experiment)
        with self._database.read_transaction() as connection:
            return frozenset(connection.execute(query).scalars())

    def add_milestone(self, experiment: int, condition: str, value: float, step: int | None, at: datetime) -> None:
        """Store that an experiment has met a condition; the caller has checked that it is not stored yet."""
        row = {"experiment_id": experiment, "condition": condition, "value": value, "step": step, "at": at}
        with self._database.write_transaction() as connection:
            connection.execute(milestones.insert().values(row))

    def find_last_before(self, moment: datetime) -> int:
        """Return the last milestone before a moment; 0: there is none."""
        query = sa.select(sa.func.max(milestones.c.id)).where(milestones.c.at < moment)
        with self._database.read_transaction() as connection:
            return connection.execute(query).scalar() or 0

    def find_next(self, after: int) -> Milestone | None:
        """Return the first milestone after another one; None: there is none."""
        names = ("number", "sub", "user", "project", "team_project")
        query = (
            sa.select(milestones, *(experiments.c[name] for name in names), _NOTIFY.label("notify"))
            .join(experiments, experiments.c.id == milestones.c.experiment_id)
            .where(milestones.c.id > after)
            .order_by(milestones.c.id)
            .limit(1)
        )
        with self._database.read_transaction() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        values = {name: row[name] for name in ("id", *names, "condition", "value", "step", "at")}
        return Milestone(**values, experiment=row["experiment_id"], notify=_read_notify(row["notify"]))


def _read_notify(section: object) -> NotifySection | None:
    return None if section is None else from_json(section, NotifySection)
