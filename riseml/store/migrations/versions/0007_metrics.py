"""The metrics that jobs report, with the position of the log up to which they are counted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the tables. The logs of closed experiments are from before reports, and are not read again."""
    tallies = op.create_table(
        "metric_tallies",
        sa.Column("experiment_id", sa.Integer, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("counted", sa.BigInteger, nullable=False),
        sa.Column("lines_given", sa.Integer, nullable=False),
        sa.Column("complete", sa.Boolean, nullable=False),
        sa.Column("dropped", sa.BigInteger, nullable=False),
        sa.Column("summaries", sa.Text, nullable=False),
    )
    op.create_table(
        "metric_histories",
        sa.Column("experiment_id", sa.Integer, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("metric", sa.String(64), primary_key=True),
        sa.Column("buckets", sa.Text, nullable=False),
    )
    experiments = sa.table("experiments", sa.column("id", sa.Integer), sa.column("closed", sa.Boolean))
    columns = ["experiment_id", "counted", "lines_given", "complete", "dropped", "summaries"]
    values = (sa.literal(0), sa.literal(0), sa.true(), sa.literal(0), sa.literal('{"metrics": [], "slow": []}'))
    closed = sa.select(experiments.c.id, *values).where(experiments.c.closed)
    op.execute(tallies.insert().from_select(columns, closed))


def downgrade() -> None:
    """Remove the tables."""
    op.drop_table("metric_histories")
    op.drop_table("metric_tallies")
