"""Indices that find a user's open experiments, and the newest ones of a project, without scanning all rows."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns that queries read to two indices."""
    op.drop_index("experiments_open", "experiments")
    op.create_index("experiments_open", "experiments", ["closed", "user"])
    op.drop_index("experiments_project", "experiments")
    op.create_index("experiments_project", "experiments", ["user", "project", "number"])
