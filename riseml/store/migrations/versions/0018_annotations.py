"""Names, tags, notes, stars and archived experiments (`riseml rename`, `tag`, `note`, `star`, `archive`)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add the tables. Nobody has said anything about an experiment of an earlier version."""
    op.create_table(
        "experiment_annotations",
        sa.Column("user", sa.String(64), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("sub", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False, server_default=""),
        sa.Column("note", sa.Text, nullable=False, server_default=""),
        sa.Column("starred", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("archived", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_index("experiment_annotations_name", "experiment_annotations", ["user", "name"])
    op.create_table(
        "experiment_tags",
        sa.Column("user", sa.String(64), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("sub", sa.Integer, primary_key=True),
        sa.Column("tag", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
    )
    op.create_index("experiment_tags_tag", "experiment_tags", ["user", "tag"])


def downgrade() -> None:
    """Remove the tables."""
    op.drop_table("experiment_tags")
    op.drop_table("experiment_annotations")
