"""The resolved base image of an experiment: every host and every attempt runs the same image."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column; existing experiments have no resolved images."""
    op.add_column("experiments", sa.Column("resolved", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    """Remove the column."""
    op.drop_column("experiments", "resolved")
