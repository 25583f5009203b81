"""Views of the table of experiments that users have saved: a name, and what the address of the page says.

A view belongs to a project, or to the table of all experiments, and to the user who has saved it. In a team project
everyone who sees the experiments of the project sees it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from riseml.base.errors import NotFound, Refused, UsageError
from riseml.control.permissions import may_change, may_see
from riseml.model import Caller
from riseml.store.database import Database
from riseml.store.schema import table_views

LONGEST_NAME = 64
LONGEST_QUERY = 8000  # characters of what the address says
MOST_VIEWS = 200  # of one user


class SavedTable(NamedTuple):
    """One saved view."""

    user: str  # who has saved it
    project: str  # empty: of all experiments
    name: str
    query: str  # `sort=-accuracy&column=lr`
    is_default: bool  # the table of the project begins with it
    team_project: str | None  # whose members see it; None: nobody but its user


class TableViewStore:
    """The views in one database. Safe from many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_views(self, caller: Caller, project: str) -> Sequence[SavedTable]:
        """Return the views of a project that a caller sees, the caller's own first, by name. What another user's own
        table begins with is no default for an admin, who sees that view, too.
        """
        with self._database.read_transaction() as connection:
            views = _select(connection, table_views.c.project == project)
        visible = [
            view if view.user == caller.user or view.team_project else view._replace(is_default=False)
            for view in views
            if may_see(caller, view.user, view.team_project)
        ]
        return sorted(visible, key=lambda view: (view.user != caller.user, view.user, view.name))

    def save(self, caller: Caller, view: SavedTable) -> SavedTable:
        """Save a view of the caller in place of theirs with the same name; return it. Of the views of one user and
        project at most one is the default.

        Raises:
            UsageError: the name or the query is not allowed.
            Refused: there are too many views, or the caller may not save one, or not in place of the present one.
        """
        view = view._replace(name=_check_name(view.name))
        if len(view.query) > LONGEST_QUERY:
            raise UsageError(
                f"the view says {len(view.query):,} characters; at most {LONGEST_QUERY:,} are kept",
                "show fewer columns",
            )
        if not may_change(caller, view.user, view.team_project):
            raise Refused(f"{caller.user} may not save a view of {view.project or 'all experiments'}", "ask an admin")
        own = sa.and_(table_views.c.user == view.user, table_views.c.project == view.project)
        with self._database.write_transaction() as connection:
            present = next(iter(_select(connection, own, table_views.c.name == view.name)), None)
            if present is not None and not may_change(caller, present.user, present.team_project):
                raise Refused(f"this key may not replace the view {view.name}", "choose another name")
            connection.execute(table_views.delete().where(own, table_views.c.name == view.name))
            count = connection.execute(sa.select(sa.func.count()).where(table_views.c.user == view.user)).scalar_one()
            if count >= MOST_VIEWS:
                raise Refused(f"{view.user} has {count:,} views, and no more are kept", "remove some of them")
            if view.is_default:
                connection.execute(table_views.update().where(own).values(is_default=False))
            connection.execute(table_views.insert().values(**view._asdict()))
        return view

    def remove(self, caller: Caller, user: str, project: str, name: str) -> SavedTable:
        """Remove a view, and return it.

        Raises:
            NotFound: there is no such view, or the caller does not see it.
            Refused: it belongs to another user.
        """
        with self._database.write_transaction() as connection:
            chosen = (table_views.c.user == user, table_views.c.project == project, table_views.c.name == name)
            view = next(iter(_select(connection, *chosen)), None)
            if view is None or not may_see(caller, user, view.team_project):
                raise NotFound(f"there is no view {name[:LONGEST_NAME]!r}", "the page lists the views that there are")
            if not may_change(caller, user, view.team_project):
                raise Refused(f"the view {name} belongs to {user}", "save one of your own")
            connection.execute(table_views.delete().where(*chosen))
        return view


def _select(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[SavedTable]:
    columns = [table_views.c[name] for name in SavedTable._fields]
    return [SavedTable(*row) for row in connection.execute(sa.select(*columns).where(*conditions))]


def _check_name(text: str) -> str:
    name = unicodedata.normalize("NFC", text).strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(
            f"{text[:80]!r} is no name of a view", f"write 1 to {LONGEST_NAME} characters without line breaks"
        )
    return name
