"""What was remarked about experiments while they ran, each kind once, in the order in which the server noticed it."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from riseml.base.records import dataclass
from riseml.spec.config.types import NotifySection
from riseml.store.codec import from_json
from riseml.store.database import Database
from riseml.store.schema import experiments, remarks

_NOTIFY = experiments.c.plan["policy", "notify"]


@dataclass(frozen=True, slots=True)
class NotedRemark:
    """A remark about an experiment, when it came for the first time."""

    id: int  # grows
    experiment: int  # key in the store
    number: int
    sub: int | None  # within its set
    user: str
    project: str
    notify: NotifySection | None  # of its riseml.yml
    kind: str  # `analysis.remarks.RemarkKind`
    job: str | None  # None: it is about the whole experiment
    text: str
    at: datetime  # when the server noticed it
    team_project: str | None = None  # whose members see the experiment; None: it belongs to its user alone


class RemarkStore:
    """Keeps remarks in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_kinds(self, experiment: int) -> frozenset[str]:
        """Return the kinds of the remarks about an experiment."""
        query = sa.select(remarks.c.kind).where(remarks.c.experiment_id == experiment)
        with self._database.read_transaction() as connection:
            return frozenset(connection.execute(query).scalars())

    def add_remark(self, experiment: int, kind: str, job: str | None, text: str, at: datetime) -> None:
        """Store a remark; the caller has checked that its kind is not stored yet."""
        row = {"experiment_id": experiment, "kind": kind, "job": job, "text": text, "at": at}
        with self._database.write_transaction() as connection:
            connection.execute(remarks.insert().values(row))

    def find_last_before(self, moment: datetime) -> int:
        """Return the last remark before a moment; 0: there is none."""
        query = sa.select(sa.func.max(remarks.c.id)).where(remarks.c.at < moment)
        with self._database.read_transaction() as connection:
            return connection.execute(query).scalar() or 0

    def find_next(self, after: int) -> NotedRemark | None:
        """Return the first remark after another one; None: there is none."""
        names = ("number", "sub", "user", "project", "team_project")
        query = (
            sa.select(remarks, *(experiments.c[name] for name in names), _NOTIFY.label("notify"))
            .join(experiments, experiments.c.id == remarks.c.experiment_id)
            .where(remarks.c.id > after)
            .order_by(remarks.c.id)
            .limit(1)
        )
        with self._database.read_transaction() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        values = {name: row[name] for name in ("id", *names, "kind", "job", "text", "at")}
        notify = None if row["notify"] is None else from_json(row["notify"], NotifySection)
        return NotedRemark(**values, experiment=row["experiment_id"], notify=notify)
