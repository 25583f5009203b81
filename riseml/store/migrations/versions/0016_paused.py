"""Sets that a user has paused (`riseml search ID --pause`)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the column. No set of an earlier version is paused."""
    op.add_column("sets", sa.Column("paused", sa.Boolean, nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Remove the column; what was paused goes on."""
    op.drop_column("sets", "paused")
