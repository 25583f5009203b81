"""Experiments across hosts: which network they use, which host makes it, and which hosts get no new jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns and the table."""
    op.add_column("experiments", sa.Column("network", sa.String(16), nullable=False, server_default="bridge"))
    op.add_column("experiments", sa.Column("fabric", sa.String(64)))
    op.create_table(
        "drained_hosts",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("at", sa.DateTime, nullable=False),
    )
