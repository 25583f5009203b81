"""The values of trials whose search has several objectives."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the column. Trials of an earlier version have one objective."""
    op.add_column("trials", sa.Column("scores", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    """Remove the column; the first objective stays."""
    op.drop_column("trials", "scores")
