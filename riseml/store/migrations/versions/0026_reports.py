"""Reports that users have written."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Add the table. An earlier version kept no reports."""
    op.create_table(
        "reports",
        sa.Column("user", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("project", sa.String(128), nullable=False, server_default=""),
        sa.Column("team_project", sa.String(128)),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("changed_at", sa.DateTime, nullable=False),
    )


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("reports")
