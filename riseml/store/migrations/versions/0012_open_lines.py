"""A position in a log names the open lines by the bytes since the oldest one began, and no longer by counted lines.

The counts of experiments whose logs are not complete are deleted: the server counts these logs again from their
beginning, because earlier versions could lose reports and values among lines that were open at the same time.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_TALLIES = sa.table(
    "metric_tallies",
    sa.column("experiment_id", sa.Integer),
    sa.column("complete", sa.Boolean),
)
_HISTORIES = sa.table("metric_histories", sa.column("experiment_id", sa.Integer))


def upgrade() -> None:
    """Delete counts that go on, and exchange the column."""
    _delete_incomplete()
    op.add_column("metric_tallies", sa.Column("open_bytes", sa.BigInteger, nullable=False, server_default="0"))
    op.drop_column("metric_tallies", "lines_given")


def downgrade() -> None:
    """Exchange the column again."""
    _delete_incomplete()
    op.add_column("metric_tallies", sa.Column("lines_given", sa.Integer, nullable=False, server_default="0"))
    op.drop_column("metric_tallies", "open_bytes")


def _delete_incomplete() -> None:
    incomplete = sa.select(_TALLIES.c.experiment_id).where(sa.not_(_TALLIES.c.complete))
    op.execute(_HISTORIES.delete().where(_HISTORIES.c.experiment_id.in_(incomplete)))
    op.execute(_TALLIES.delete().where(sa.not_(_TALLIES.c.complete)))
