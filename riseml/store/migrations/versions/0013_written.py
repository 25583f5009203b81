"""What jobs wrote outside of OUTPUT_DIR."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the table. Nothing is known of the jobs of an earlier version."""
    op.create_table(
        "written_files",
        sa.Column("experiment_id", sa.Integer, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("job", sa.String(64), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("record", sa.JSON, nullable=False),
    )


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("written_files")
