"""Experiments with several environments: one resolved image for each base, instead of one for the experiment."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_TABLE = sa.table(
    "experiments", sa.column("id", sa.Integer), sa.column("plan", sa.JSON), sa.column("resolved", sa.Text)
)


def upgrade() -> None:
    """Store each base image with its resolved image: `[["python:3.11", "python@sha256:..."]]`."""
    connection = op.get_bind()
    rows = connection.execute(sa.select(_TABLE).where(_TABLE.c.resolved != "")).mappings().all()
    for row in rows:
        pair = (row["plan"]["image"]["base"], row["resolved"])
        changed = _TABLE.update().where(_TABLE.c.id == row["id"]).values(resolved=json.dumps([pair]))
        connection.execute(changed)
