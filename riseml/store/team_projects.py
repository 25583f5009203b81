"""The projects that users of a team's server share, and their members, in one database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from riseml.base.accounts import check_account_name
from riseml.base.errors import Conflict, NotFound, UsageError
from riseml.base.records import dataclass
from riseml.base.roles import Role
from riseml.store.database import Database
from riseml.store.schema import api_keys, experiments, project_members, reports, table_views, team_projects, users

PROJECT_ROLES = (Role.VIEWER, Role.MEMBER, Role.MAINTAINER)
"""What a user may be in a team project: ADMIN is a role on the server."""


@dataclass(frozen=True, slots=True)
class TeamProject:
    """One project that users share."""

    name: str
    created_at: datetime
    open: bool = False  # every user of the server sees its experiments
    members: tuple[tuple[str, Role], ...] = ()  # by name


class TeamProjectStore:
    """The team projects in one database. Safe from many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_project(self, name: str, moment: datetime, *, is_open: bool = False) -> TeamProject:
        """Make a project without members.

        Raises:
            UsageError: the name is not allowed.
            Conflict: there is a project with this name.
        """
        check_account_name("project", name)
        project = TeamProject(name, moment, open=is_open)
        with self._database.write_transaction() as connection:
            if _select_projects(connection, team_projects.c.name == name):
                raise Conflict(f"there is a project {name} already", f"`riseml project show {name}` shows it")
            connection.execute(team_projects.insert().values(name=name, open=is_open, created_at=moment))
        return project

    def open_project(self, name: str, *, is_open: bool) -> TeamProject:
        """Show the experiments of a project to every user, or to its members alone; return the project.

        Raises:
            NotFound: there is no such project.
        """
        with self._database.write_transaction() as connection:
            _find_project(connection, name)
            connection.execute(team_projects.update().where(team_projects.c.name == name).values(open=is_open))
            return _find_project(connection, name)

    def remove_project(self, name: str, moment: datetime) -> TeamProject:
        """Remove a project, and return what it was: its experiments, views and reports are those of their users alone.
        Keys that are bound to it end.

        Raises:
            NotFound: there is no such project.
        """
        bound_keys = sa.and_(api_keys.c.project == name, api_keys.c.revoked_at.is_(None))
        with self._database.write_transaction() as connection:
            project = _find_project(connection, name)
            own = experiments.c.team_project == name
            connection.execute(experiments.update().where(own).values(team_project=None))
            of_project = table_views.c.team_project == name  # a later project of this name has other members
            connection.execute(table_views.update().where(of_project).values(team_project=None))
            in_project = reports.c.team_project == name
            connection.execute(reports.update().where(in_project).values(team_project=None))
            connection.execute(api_keys.update().where(bound_keys).values(revoked_at=moment))
            connection.execute(project_members.delete().where(project_members.c.project == name))
            connection.execute(team_projects.delete().where(team_projects.c.name == name))
        return project

    def load_project(self, name: str) -> TeamProject:
        """Return a project with its members.

        Raises:
            NotFound: there is no such project.
        """
        with self._database.read_transaction() as connection:
            return _find_project(connection, name)

    def list_projects(self) -> list[TeamProject]:
        """Return all projects with their members, by name."""
        with self._database.read_transaction() as connection:
            return _select_projects(connection)

    def load_memberships(self, user: str) -> tuple[tuple[str, Role], ...]:
        """Return the projects whose experiments a user sees, and the role in each, as `Caller.projects` has them."""
        with self._database.read_transaction() as connection:
            return select_memberships(connection, user)

    def put_member(self, project: str, user: str, role: Role) -> TeamProject:
        """Make a user a member of a project, or give a member another role; return the project.

        Raises:
            NotFound: there is no such project or user.
            UsageError: the role is not one of a project.
        """
        if role not in PROJECT_ROLES:
            raise UsageError(
                f"{role.value} is not a role in a project", "a member of a project is viewer, member or maintainer"
            )
        with self._database.write_transaction() as connection:
            _find_project(connection, project)
            if connection.execute(sa.select(users.c.name).where(users.c.name == user)).first() is None:
                raise NotFound(f"there is no user {user}", "ask an admin for `riseml user create`")
            connection.execute(project_members.delete().where(_is_member(project, user)))
            connection.execute(project_members.insert().values(project=project, user=user, role=role.value))
            return _find_project(connection, project)

    def remove_member(self, project: str, user: str) -> TeamProject:
        """End a membership, and return the project.

        Raises:
            NotFound: there is no such project, or the user is not a member.
        """
        with self._database.write_transaction() as connection:
            _find_project(connection, project)
            if not connection.execute(project_members.delete().where(_is_member(project, user))).rowcount:
                raise NotFound(f"{user} is not a member of {project}", f"`riseml project show {project}` shows them")
            return _find_project(connection, project)

    def list_memberships(self, user: str) -> tuple[tuple[str, Role], ...]:
        """Return the projects in which a user is a member, and the role in each, by name."""
        with self._database.read_transaction() as connection:
            return select_memberships(connection, user)


def select_memberships(connection: sa.Connection, user: str) -> tuple[tuple[str, Role], ...]:
    """Return the projects whose experiments a user sees, and the role in each, by name: the user's own projects, and
    those that are open to all, in which everybody is a viewer.
    """
    own = sa.and_(project_members.c.project == team_projects.c.name, project_members.c.user == user)
    query = (
        sa.select(team_projects.c.name, project_members.c.role)
        .join(project_members, own, isouter=True)
        .where(sa.or_(project_members.c.user.is_not(None), team_projects.c.open))
        .order_by(team_projects.c.name)
    )
    return tuple((row.name, Role(row.role or Role.VIEWER.value)) for row in connection.execute(query))


def _is_member(project: str, user: str) -> sa.ColumnElement[bool]:
    return sa.and_(project_members.c.project == project, project_members.c.user == user)


def _find_project(connection: sa.Connection, name: str) -> TeamProject:
    projects = _select_projects(connection, team_projects.c.name == name)
    if not projects:
        raise NotFound(f"there is no project {name}", "`riseml project list` shows them")
    return projects[0]


def _select_projects(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[TeamProject]:
    """Return projects with their members."""
    rows = connection.execute(sa.select(team_projects).where(*conditions).order_by(team_projects.c.name)).mappings()
    projects: list[Mapping[Any, Any]] = list(rows)
    query = sa.select(project_members).order_by(project_members.c.project, project_members.c.user)
    if conditions:
        query = query.where(project_members.c.project.in_([project["name"] for project in projects]))
    members: dict[str, list[tuple[str, Role]]] = {}
    for row in connection.execute(query):
        members.setdefault(row.project, []).append((row.user, Role(row.role)))
    return [
        TeamProject(project["name"], project["created_at"], project["open"], tuple(members.get(project["name"], ())))
        for project in projects
    ]
