"""Which rows a caller sees, as a condition: the database leaves the others out, and an answer takes no time for them.

It says the same as `control.permissions.may_see`; tests/unit/store/test_visibility.py compares both.
"""

from __future__ import annotations

import sqlalchemy as sa

from riseml.base.roles import Role
from riseml.model import Caller
from riseml.store.schema import experiments


def select_visible(caller: Caller) -> sa.ColumnElement[bool]:
    """Return the condition of the experiments that a caller sees."""
    team_project = experiments.c.team_project
    bound = sa.true() if caller.project is None else team_project == caller.project
    if caller.role is Role.ADMIN:
        return bound
    shared = team_project.in_([name for name, _ in caller.projects])
    return sa.and_(bound, sa.or_(experiments.c.user == caller.user, shared))
