"""The first tables: facts, sets, experiments, jobs, events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "facts",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "sets",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("user", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("project", sa.String(128), nullable=False),
        sa.Column("concurrency", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.UniqueConstraint("user", "number"),
    )
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("user", sa.String(64), nullable=False),
        sa.Column("uid", sa.Integer, nullable=False),
        sa.Column("gid", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("sub", sa.Integer),
        sa.Column("set_id", sa.Integer, sa.ForeignKey("sets.id")),
        sa.Column("project", sa.String(128), nullable=False),
        sa.Column("config", sa.Text, nullable=False),
        sa.Column("plan", sa.JSON, nullable=False),
        sa.Column("snapshot", sa.String(64), nullable=False),
        sa.Column("environment", sa.JSON, nullable=False),
        sa.Column("notes", sa.JSON, nullable=False),
        sa.Column("key", sa.String(64)),
        sa.Column("wanted", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("verdict", sa.JSON),
        sa.Column("subnet", sa.String(64)),
        sa.Column("closed", sa.Boolean, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("placed_at", sa.DateTime),
        sa.Column("started_at", sa.DateTime),
        sa.Column("ended_at", sa.DateTime),
        sa.UniqueConstraint("user", "number", "sub"),
    )
    op.create_index("experiments_open", "experiments", ["closed"])
    op.create_index("experiments_project", "experiments", ["user", "project"])
    op.create_index("experiments_key", "experiments", ["user", "key"])
    op.create_table(
        "jobs",
        sa.Column("experiment_id", sa.Integer, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("record", sa.JSON, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("experiment_id", sa.Integer, sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("job", sa.String(64)),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("exit_code", sa.Integer),
        sqlite_autoincrement=True,
    )
    op.create_index("events_experiment", "events", ["experiment_id", "id"])


def downgrade() -> None:
    """Remove the tables."""
    for table in ("events", "jobs", "experiments", "sets", "facts"):
        op.drop_table(table)
