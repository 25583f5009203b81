"""Which experiments a caller sees, and which they change. Pure, and the only place that decides it.

An admin sees and changes everything. Others see what belongs to them and to their team projects. A member changes what
is theirs, a maintainer also what others have in the project; a viewer of the server changes nothing. A key that is
bound to a team project sees this one alone.
"""

from __future__ import annotations

from riseml.base.errors import Refused
from riseml.base.roles import Role
from riseml.model import Caller


def may_see(caller: Caller, user: str, team_project: str | None) -> bool:
    """Return True when a caller sees what a user has, in a team project or in none."""
    if caller.project is not None and team_project != caller.project:
        return False
    return caller.role is Role.ADMIN or user == caller.user or _find_role(caller, team_project) is not None


def may_change(caller: Caller, user: str, team_project: str | None) -> bool:
    """Return True when a caller may change what a user has, in a team project or in none."""
    if not may_see(caller, user, team_project) or caller.role is Role.VIEWER:
        return False
    role = _find_role(caller, team_project)
    return caller.role is Role.ADMIN or user == caller.user or (role is not None and role >= Role.MAINTAINER)


def sees_everything(caller: Caller) -> bool:
    """Return True when nothing on the server is hidden from a caller."""
    return caller.role is Role.ADMIN and caller.project is None


def choose_team_project(caller: Caller, project: str) -> str | None:
    """Return the team project to which an experiment of a caller belongs, by the name of its project; None: to none.

    Raises:
        Refused: the key of the caller is bound to another project.
    """
    role = _find_role(caller, project)
    if caller.project not in (None, project):
        raise Refused(
            f"this key is bound to the project {caller.project}, and cannot submit to {project}",
            f"write `project: {caller.project}` into riseml.yml, or use another key",
        )
    return project if role is not None and role >= Role.MEMBER else None


def _find_role(caller: Caller, team_project: str | None) -> Role | None:
    return dict(caller.projects).get(team_project or "")
