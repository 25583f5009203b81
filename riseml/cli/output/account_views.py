"""Users, keys and team projects for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import count_noun, format_age, format_fields, format_moment

if TYPE_CHECKING:
    from riseml import wire

_NOTHING = "-"
_USERS = (
    Column("USER"),
    Column("ROLE"),
    Column("UID", right=True),
    Column("GID", right=True),
    Column("STATE"),
    Column("EMAIL", shrinks=True),
)
_KEYS = (
    Column("ID"),
    Column("USER"),
    Column("NAME", shrinks=True),
    Column("ENDS IN"),
    Column("SCOPE"),
    Column("PROJECT"),
    Column("STATE"),
    Column("EXPIRES", spare=2),
    Column("LAST USE", spare=1),
)
_SESSIONS = (
    Column("ID"),
    Column("USER"),
    Column("WHAT"),
    Column("LAST USE"),
    Column("ADDRESS"),
    Column("PROGRAM", shrinks=True),
    Column("EXPIRES", spare=1),
)
_SESSION_KINDS = {"page": "browser", "device": "command line"}
_PROJECTS = (Column("PROJECT"), Column("OPEN TO"), Column("MEMBERS", folds=True))
_MEMBERS = (Column("USER"), Column("ROLE"))


def list_caller(caller: wire.CallerView) -> list[str]:
    """Return who calls, and what they may do."""
    uid = _NOTHING if caller["uid"] is None else f"{caller['uid']}:{caller['gid']}"
    projects = ", ".join(f"{each['project']} ({each['role']})" for each in caller["projects"])
    key = "" if not caller["key"] else f"{caller['key']}, which may {_SCOPES.get(caller['scope'], caller['scope'])}"
    return format_fields(
        [
            ("User", caller["user"]),
            ("Role", caller["role"] if caller["team"] else "the only user of this server"),
            ("Uid and gid", uid),
            ("Key", key),
            ("Bound to", caller["project"]),
            ("Projects", projects),
        ]
    )


_SCOPES = {"read": "read", "run": "read and run experiments", "admin": "do all that the user may do"}


def list_users(users: Sequence[wire.UserView], style: Style) -> list[str]:
    """Return a table of users."""
    rows = [
        [
            user["name"],
            user["role"],
            _format_number(user["uid"]),
            _format_number(user["gid"]),
            "disabled" if user["disabled"] else "enabled",
            user["email"] or _NOTHING,
        ]
        for user in users
    ]
    return build_table(_USERS, rows, style)


def list_user(user: wire.UserView) -> list[str]:
    """Return the fields of one user."""
    return format_fields(
        [
            ("User", user["name"]),
            ("Role", user["role"]),
            ("Uid and gid", _NOTHING if user["uid"] is None else f"{user['uid']}:{user['gid']}"),
            ("State", "disabled" if user["disabled"] else "enabled"),
            ("E-mail", user["email"]),
            ("Since", format_moment(user["created_at"])),
        ]
    )


def list_keys(keys: Sequence[wire.KeyView], now: datetime, style: Style) -> list[str]:
    """Return a table of keys."""
    rows = [
        [
            key["id"],
            key["user"],
            key["name"] or _NOTHING,
            key["tail"],
            key["scope"],
            key["project"] or _NOTHING,
            key["state"],
            format_moment(key["expires_at"])[:10],
            "never" if key["used_at"] is None else f"{format_age(key['used_at'], now)} ago",
        ]
        for key in keys
    ]
    return build_table(_KEYS, rows, style)


def list_session_rows(sessions: Sequence[wire.SessionView], now: datetime, style: Style) -> list[str]:
    """Return a table of sessions."""
    rows = [
        [
            session["id"],
            session["user"],
            _SESSION_KINDS.get(session["kind"], session["kind"]),
            f"{format_age(session['used_at'], now)} ago",
            session["address"],
            session["user_agent"] or _NOTHING,
            format_moment(session["expires_at"])[:10],
        ]
        for session in sessions
    ]
    return build_table(_SESSIONS, rows, style) if rows else ["No browser and no command is logged in with a session."]


def describe_key(key: wire.KeyView) -> str:
    """Return what a new key is for, in one line."""
    bound = f", in the project {key['project']} alone" if key["project"] else ""
    may = _SCOPES.get(key["scope"], key["scope"])
    return f"Key {key['id']} of {key['user']} may {may}{bound}, until {format_moment(key['expires_at'])[:10]}."


def list_projects(projects: Sequence[wire.TeamProjectView], style: Style) -> list[str]:
    """Return a table of team projects."""
    rows = [
        [
            project["name"],
            "all users" if project["open"] else "members",
            ", ".join(f"{member['user']} ({member['role']})" for member in project["members"]) or _NOTHING,
        ]
        for project in projects
    ]
    return build_table(_PROJECTS, rows, style)


def list_project(project: wire.TeamProjectView, style: Style) -> list[str]:
    """Return one team project with its members."""
    open_to = "all users, as viewers" if project["open"] else f"its {count_noun(len(project['members']), 'member')}"
    rows = [[member["user"], member["role"]] for member in project["members"]]
    heads = format_fields(
        [("Project", project["name"]), ("Open to", open_to), ("Since", format_moment(project["created_at"]))]
    )
    return [*heads, *(["", *build_table(_MEMBERS, rows, style)] if rows else [])]


def _format_number(number: int | None) -> str:
    return _NOTHING if number is None else str(number)
