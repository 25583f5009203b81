"""Searches: their settings, their trials with results, and the experiments of the trials."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the columns and the table. No set of an earlier version has a search."""
    op.add_column("sets", sa.Column("search", sa.JSON))
    op.add_column("sets", sa.Column("templates", sa.JSON))
    op.add_column("sets", sa.Column("environment", sa.JSON))
    op.add_column("sets", sa.Column("variables", sa.JSON))
    op.add_column("sets", sa.Column("most_trials", sa.Integer, nullable=False, server_default="0"))
    op.add_column("sets", sa.Column("wanted", sa.String(16), nullable=False, server_default="RUN"))
    op.add_column("sets", sa.Column("search_end", sa.String(32)))
    op.create_table(
        "trials",
        sa.Column("set_id", sa.Integer, sa.ForeignKey("sets.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("experiment_id", sa.Integer, sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("point", sa.JSON, nullable=False),
        sa.Column("asked_after", sa.Integer, nullable=False),
        sa.Column("reached", sa.JSON),
        sa.Column("stopped", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("outcome", sa.String(16)),
        sa.Column("told", sa.Integer),
        sa.Column("value", sa.Float(53)),
        sa.Column("message", sa.Text, nullable=False, server_default=""),
    )


def downgrade() -> None:
    """Remove the columns and the table."""
    op.drop_table("trials")
    for column in ("search_end", "wanted", "most_trials", "variables", "environment", "templates", "search"):
        op.drop_column("sets", column)
