"""The team project of an experiment, whose members see it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add the column and its index. Experiments of earlier versions belong to their users alone."""
    op.add_column("experiments", sa.Column("team_project", sa.String(32)))
    op.create_index("experiments_team_project", "experiments", ["team_project", "user", "number"])


def downgrade() -> None:
    """Remove the column: each experiment belongs to its user alone again."""
    op.drop_index("experiments_team_project", "experiments")
    op.drop_column("experiments", "team_project")
