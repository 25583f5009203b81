"""Sessions at a team's server, and the persons of the provider that its users are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Add the tables. An earlier version has no sessions in its store."""
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("user", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("used_at", sa.DateTime, nullable=False),
        sa.Column("expires_at", sa.DateTime, nullable=False),
        sa.Column("user_agent", sa.String(200), nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("key", sa.String(64), nullable=False, server_default=""),
        sa.Column("refresh", sa.Text),
        sa.Column("checked_at", sa.DateTime),
    )
    op.create_index("sessions_user", "sessions", ["user"])
    op.create_table(
        "provider_subjects",
        sa.Column("issuer", sa.String(255), primary_key=True),
        sa.Column("subject", sa.String(255), primary_key=True),
        sa.Column("user", sa.String(64), nullable=False, unique=True),
    )


def downgrade() -> None:
    """Remove the tables."""
    op.drop_table("provider_subjects")
    op.drop_table("sessions")
