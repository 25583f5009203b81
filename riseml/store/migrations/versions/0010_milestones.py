"""Metrics that have reached a value of `train.notify`."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the table. No experiment of an earlier version has a condition."""
    op.create_table(
        "milestones",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("experiment_id", sa.Integer, sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("condition", sa.String(200), nullable=False),
        sa.Column("value", sa.Float(53), nullable=False),
        sa.Column("step", sa.BigInteger),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.UniqueConstraint("experiment_id", "condition"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("milestones")
