"""Secrets, the credentials of registries, and the values that open runs use (`riseml secret`, `riseml registry`)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Add the tables. An earlier version kept no secrets."""
    op.create_table(
        "secrets",
        sa.Column("owner_kind", sa.String(16), primary_key=True),
        sa.Column("owner", sa.String(128), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("set_at", sa.DateTime, nullable=False),
        sa.Column("set_by", sa.String(64), nullable=False),
        sa.Column("used_at", sa.DateTime),
    )
    op.create_table(
        "registries",
        sa.Column("owner_kind", sa.String(16), primary_key=True),
        sa.Column("owner", sa.String(128), primary_key=True),
        sa.Column("host", sa.String(255), primary_key=True),
        sa.Column("login", sa.String(255), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("set_at", sa.DateTime, nullable=False),
        sa.Column("set_by", sa.String(64), nullable=False),
        sa.Column("used_at", sa.DateTime),
    )
    op.create_table(
        "run_secrets",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("experiment_id", sa.Integer, sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("run_secrets_experiment", "run_secrets", ["experiment_id"])


def downgrade() -> None:
    """Remove the tables."""
    for table in ("run_secrets", "registries", "secrets"):
        op.drop_table(table)
