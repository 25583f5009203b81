"""Users, keys and team projects in the shapes of the HTTP API."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, cast

from riseml import wire
from riseml.base.accounts import NO_UID
from riseml.base.roles import Role
from riseml.model import Caller
from riseml.server.api.views.record_views import show_time
from riseml.store.accounts import ApiKey, NewKey, User
from riseml.store.team_projects import TeamProject
from riseml.wire.accounts import ProjectRole, UserRole


def show_caller(caller: Caller, *, is_team: bool) -> wire.CallerView:
    """Return who calls."""
    owner = caller.owner
    return {
        "user": owner.user,
        "role": _show_user_role(caller.role),
        "uid": None if owner.uid == NO_UID else owner.uid,
        "gid": None if owner.gid == NO_UID else owner.gid,
        "scope": caller.scope.value,
        "key": caller.key,
        "project": caller.project,
        "projects": [{"project": name, "role": _show_project_role(role)} for name, role in caller.projects],
        "team": is_team,
    }


def show_user(user: User) -> wire.UserView:
    """Return a user."""
    return {
        "name": user.name,
        "role": _show_user_role(user.role),
        "uid": user.uid,
        "gid": user.gid,
        "disabled": user.disabled,
        "email": user.email,
        "created_at": show_time(user.created_at) or "",
    }


def show_key(key: ApiKey, moment: datetime) -> wire.KeyView:
    """Return a key, and whether it is valid at a moment."""
    state: Literal["valid", "expired", "revoked"] = "valid" if key.is_valid(moment) else "expired"
    return {
        "id": key.id,
        "user": key.user,
        "name": key.name,
        "tail": key.tail,
        "scope": key.scope.value,
        "project": key.project,
        "state": state if key.revoked_at is None else "revoked",
        "created_at": show_time(key.created_at) or "",
        "expires_at": show_time(key.expires_at) or "",
        "used_at": show_time(key.used_at),
        "revoked_at": show_time(key.revoked_at),
    }


def show_new_key(new_key: NewKey, moment: datetime) -> wire.NewKeyView:
    """Return a key that was just made."""
    return {"secret": new_key.secret, "key": show_key(new_key.key, moment)}


def show_project(project: TeamProject) -> wire.TeamProjectView:
    """Return a team project with its members."""
    return {
        "name": project.name,
        "open": project.open,
        "created_at": show_time(project.created_at) or "",
        "members": [{"user": user, "role": _show_project_role(role)} for user, role in project.members],
    }


def _show_user_role(role: Role) -> UserRole:
    return cast("UserRole", role.value)


def _show_project_role(role: Role) -> ProjectRole:
    return cast("ProjectRole", role.value)
