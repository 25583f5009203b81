"""Remarks about experiments that webhooks are told of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Add the table. An earlier version kept no remarks."""
    op.create_table(
        "remarks",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("experiment_id", sa.Integer, sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("job", sa.String(128)),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.UniqueConstraint("experiment_id", "kind"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("remarks")
