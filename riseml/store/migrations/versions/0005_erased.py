"""Closed experiments keep no values of variables: they may be secrets, and no job needs them any more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Erase what earlier versions kept."""
    table = sa.table("experiments", sa.column("closed", sa.Boolean), sa.column("environment", sa.JSON))
    op.execute(table.update().where(table.c.closed).values(environment=[]))
