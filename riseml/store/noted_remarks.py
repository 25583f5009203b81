"""What was remarked about experiments while they ran, each kind once, in the order in which the server noticed it."""

from __future__ import annotations

from datetime import datetime

from riseml.base.records import dataclass
from riseml.spec.config.types import NotifySection
from riseml.store.database import Database
from riseml.store.noted_table import NotedTable
from riseml.store.schema import remarks


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
        self._noted = NotedTable(database, remarks.c.kind)

    def list_kinds(self, experiment: int) -> frozenset[str]:
        """Return the kinds of the remarks about an experiment."""
        return self._noted.list_kinds(experiment)

    def add_remark(self, experiment: int, kind: str, job: str | None, text: str, at: datetime) -> None:
        """Store a remark; the caller has checked that its kind is not stored yet."""
        self._noted.add_row(experiment, at, {"kind": kind, "job": job, "text": text})

    def find_last_before(self, moment: datetime) -> int:
        """Return the last remark before a moment; 0: there is none."""
        return self._noted.find_last_before(moment)

    def find_next(self, after: int) -> NotedRemark | None:
        """Return the first remark after another one; None: there is none."""
        values = self._noted.find_next(after)
        return None if values is None else NotedRemark(**values)
