"""Users, API keys, team projects and their members (`riseml user`, `key`, `project`)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the tables. A server of an earlier version had one user, who needs no row."""
    op.create_table(
        "users",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("uid", sa.BigInteger),
        sa.Column("gid", sa.BigInteger),
        sa.Column("disabled", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("email", sa.String(254), nullable=False, server_default=""),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "team_projects",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("open", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "project_members",
        sa.Column("project", sa.String(32), sa.ForeignKey("team_projects.name"), primary_key=True),
        sa.Column("user", sa.String(32), sa.ForeignKey("users.name"), primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
    )
    op.create_index("project_members_user", "project_members", ["user"])
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("user", sa.String(32), sa.ForeignKey("users.name"), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("tail", sa.String(8), nullable=False),
        sa.Column("name", sa.String(64), nullable=False, server_default=""),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("project", sa.String(32)),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("expires_at", sa.DateTime, nullable=False),
        sa.Column("used_at", sa.DateTime),
        sa.Column("revoked_at", sa.DateTime),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("api_keys_user", "api_keys", ["user"])


def downgrade() -> None:
    """Remove the tables."""
    for table in ("api_keys", "project_members", "team_projects", "users"):
        op.drop_table(table)
