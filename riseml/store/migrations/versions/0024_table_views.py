"""Views of the table of experiments that users have saved on the page."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Add the table. An earlier version kept no views."""
    op.create_table(
        "table_views",
        sa.Column("user", sa.String(64), primary_key=True),
        sa.Column("project", sa.String(128), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("is_default", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("team_project", sa.String(128)),
    )


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("table_views")
