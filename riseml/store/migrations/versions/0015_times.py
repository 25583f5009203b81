"""Waits between attempts, and ends that are the jobs' own: earlier versions stored when the server noticed an end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

_EXPERIMENTS = sa.table(
    "experiments",
    sa.column("id", sa.Integer),
    sa.column("verdict", sa.JSON),
    *(sa.column(name, sa.DateTime) for name in ("placed_at", "started_at", "ended_at")),
)
_JOBS = sa.table(
    "jobs",
    sa.column("experiment_id", sa.Integer),
    sa.column("record", sa.JSON),
)
_AT_ONCE = 100  # experiments
_SAME = timedelta(seconds=1)  # a shorter delay is not mended
_COUNTS = ("DECIDES", "HELPS")
_CAUSED = ("CASCADE", "NO_LONGER_NEEDED")


def upgrade() -> None:
    """Add the columns. Nothing is known of the waits of experiments that were retried before."""
    op.add_column("experiments", sa.Column("waited", sa.Float, nullable=False, server_default="0"))
    op.add_column("experiments", sa.Column("waits_since", sa.DateTime))
    _mend_ends()


def _mend_ends() -> None:
    """Store the ends of experiments as their jobs say, where the server noticed them later."""
    connection = op.get_bind()
    has_run = sa.and_(_EXPERIMENTS.c.started_at.is_not(None), _EXPERIMENTS.c.ended_at.is_not(None))
    query = sa.select(_EXPERIMENTS).where(has_run).order_by(_EXPERIMENTS.c.id).limit(_AT_ONCE)
    update = _EXPERIMENTS.update().where(_EXPERIMENTS.c.id == sa.bindparam("row"))
    update = update.values(ended_at=sa.bindparam("ended"))
    last_id = 0
    while rows := connection.execute(query.where(_EXPERIMENTS.c.id > last_id)).all():
        last_id = rows[-1].id
        jobs: dict[int, list[dict[str, Any]]] = {row.id: [] for row in rows}
        for identity, record in connection.execute(
            sa.select(_JOBS.c.experiment_id, _JOBS.c.record).where(_JOBS.c.experiment_id.in_(list(jobs)))
        ):
            jobs[identity].append(record)
        ends = ((row, _find_end(row, jobs[row.id])) for row in rows)
        changes = [{"row": row.id, "ended": end} for row, end in ends if end is not None and end < row.ended_at - _SAME]
        if changes:
            connection.execute(update, changes)


def _find_end(row: Any, records: list[dict[str, Any]]) -> datetime | None:
    """Return when the last job of an experiment ended; None: its jobs do not know."""
    jobs = [
        record
        for record in records
        if record["part"] != "PREPARES" and record.get("started_at") and record.get("ended_at")
    ]
    decider = (row.verdict or {}).get("job")
    own = [job for job in jobs if job["reason"] not in _CAUSED]
    counted = [job for job in own if job["part"] in _COUNTS or job["name"] == decider] if decider else jobs
    if not counted:
        return None
    started = min(_read_time(job["started_at"]) for job in jobs)
    ended = max(_read_time(job["ended_at"]) for job in counted)
    behind = max(timedelta(), (row.placed_at or started) - started)  # the clock of the host
    begun: datetime = row.started_at
    return max(ended + behind, begun)


def _read_time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
