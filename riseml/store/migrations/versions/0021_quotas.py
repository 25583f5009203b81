"""Quotas (`riseml quota`), and the times at which experiments had places (`riseml usage`)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

_TERMINAL = ("FINISHED", "FAILED", "KILLED")


def upgrade() -> None:
    """Add the tables. Of an earlier experiment the last place is known; it is what `usage` shows of it."""
    op.create_table(
        "placements",
        sa.Column("experiment_id", sa.Integer, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("placed_at", sa.DateTime, primary_key=True),
        sa.Column("waited_since", sa.DateTime, nullable=False),
        sa.Column("ended_at", sa.DateTime),
        sa.Column("gpus", sa.Integer, nullable=False),
        sa.Column("cpus", sa.Float, nullable=False),
        sa.Column("mem", sa.Integer, nullable=False),
    )
    op.create_index("placements_ended", "placements", ["ended_at"])
    op.create_table(
        "quotas",
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("record", sa.JSON, nullable=False),
    )
    _add_last_places(op.get_bind())


def downgrade() -> None:
    """Remove the tables."""
    op.drop_table("quotas")
    op.drop_table("placements")


def _add_last_places(connection: sa.Connection) -> None:
    names = ("id", "plan", "created_at", "placed_at", "ended_at", "waits_since", "state")
    types = {"id": sa.Integer, "plan": sa.JSON, "state": sa.String}
    experiments = sa.table("experiments", *(sa.column(name, types.get(name, sa.DateTime)) for name in names))
    times = [sa.column(name, sa.DateTime) for name in ("placed_at", "waited_since", "ended_at")]
    numbers = [sa.column(name, sa.Integer) for name in ("experiment_id", "gpus", "mem")]
    placements = sa.table("placements", *times, *numbers, sa.column("cpus", sa.Float))
    columns = [experiments.c[name] for name in names]
    placed = connection.execute(sa.select(*columns).where(experiments.c.placed_at.isnot(None))).mappings().all()
    rows = [_make_row(row) for row in placed]
    if rows:
        connection.execute(placements.insert(), rows)


def _make_row(row: sa.RowMapping) -> dict[str, object]:
    needs = [job["resources"] for job in row["plan"]["jobs"] if job["part"] != "PREPARES"]
    ended = row["ended_at"] or (row["placed_at"] if row["state"] in _TERMINAL else None)
    return {
        "experiment_id": row["id"],
        "placed_at": row["placed_at"],
        "waited_since": min(row["created_at"], row["placed_at"]),
        "ended_at": None if ended is None else max(ended, row["placed_at"]),
        "gpus": sum(need.get("gpus", 0) for need in needs),
        "cpus": sum(need.get("cpus", 0) for need in needs),
        "mem": sum(need.get("mem", 0) for need in needs),
    }
