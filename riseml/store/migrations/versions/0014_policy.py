"""The keys of `train` that a plan has as they are written, in one record of the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_KEYS = (
    *("shm_size", "stop_grace", "max_duration", "idle_timeout", "retry", "priority", "metrics", "data", "store"),
    *("notify", "save", "variables", "outputs"),
)
_EXPERIMENTS = sa.table("experiments", sa.column("id", sa.Integer), sa.column("plan", sa.JSON))
_SETS = sa.table("sets", sa.column("id", sa.Integer), sa.column("templates", sa.JSON(none_as_null=True)))
_AT_ONCE = 100  # rows


def upgrade() -> None:
    """Move the keys of each plan into its `policy`, also in the plans that searches have for their trials."""
    _change_column(_EXPERIMENTS, "plan", _gather_keys)
    _change_column(_SETS, "templates", lambda templates: [[values, _gather_keys(plan)] for values, plan in templates])


def _gather_keys(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the plan with a `policy`. A key that an old plan lacks gets the default of the code."""
    policy = {key: plan[key] for key in _KEYS if key in plan}
    return {name: value for name, value in plan.items() if name not in policy} | {"policy": policy}


def _change_column(table: sa.TableClause, name: str, change: Callable[[Any], Any]) -> None:
    """Change every value of a column."""
    column = table.c[name]
    last_id = 0
    connection = op.get_bind()
    update = table.update().where(table.c.id == sa.bindparam("row")).values({name: sa.bindparam("changed")})
    query = sa.select(table.c.id, column).where(column.is_not(None)).order_by(table.c.id).limit(_AT_ONCE)
    while rows := connection.execute(query.where(table.c.id > last_id)).all():
        connection.execute(update, [{"row": row.id, "changed": change(row[1])} for row in rows])
        last_id = rows[-1].id
