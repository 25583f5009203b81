"""Outputs that are never removed (`riseml keep`)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the table. No output of an earlier version is kept."""
    op.create_table(
        "kept_outputs",
        sa.Column("experiment_id", sa.Integer, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("at", sa.DateTime, nullable=False),
    )


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("kept_outputs")
