"""The values of trials whose search has several objectives, and by how much metrics fail its constraints."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the columns. Searches of an earlier version have one objective, and no constraints."""
    op.add_column("trials", sa.Column("scores", sa.JSON(none_as_null=True)))
    op.add_column("trials", sa.Column("excess", sa.Float(53), nullable=False, server_default="0"))


def downgrade() -> None:
    """Remove the columns; the first objective stays."""
    op.drop_column("trials", "scores")
    op.drop_column("trials", "excess")
