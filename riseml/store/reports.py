"""Reports that users have written: Markdown under a name, which belongs to its user and perhaps to a team project."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from riseml.base.errors import Conflict, NotFound, Refused, UsageError
from riseml.control.permissions import may_change, may_see
from riseml.model import Caller
from riseml.store.database import Database
from riseml.store.schema import reports

MOST_REPORTS = 500  # of one user

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class SavedReport(NamedTuple):
    """One report."""

    user: str  # who has made it
    name: str
    project: str  # empty: none
    team_project: str | None  # whose members see it; None: nobody but its user
    title: str
    text: str
    version: int  # 1, and one more with each change
    changed_at: datetime


class ReportStore:
    """The reports in one database. Safe from many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_reports(self, caller: Caller) -> Sequence[SavedReport]:
        """Return the reports that a caller sees, the caller's own first, without their texts."""
        columns = [sa.literal("").label("text") if name == "text" else reports.c[name] for name in SavedReport._fields]
        with self._database.read_transaction() as connection:
            every = [SavedReport(*row) for row in connection.execute(sa.select(*columns))]
        visible = [report for report in every if may_see(caller, report.user, report.team_project)]
        return sorted(visible, key=lambda report: (report.user != caller.user, report.user, report.name))

    def load(self, caller: Caller, user: str, name: str) -> SavedReport:
        """Return a report.

        Raises:
            NotFound: there is no such report, or the caller does not see it.
        """
        with self._database.read_transaction() as connection:
            report = _find(connection, user, name)
        if report is None or not may_see(caller, user, report.team_project):
            raise _report_absence(caller, user, name)
        return report

    def save(self, caller: Caller, report: SavedReport) -> SavedReport:
        """Save a report, and return it with its new version.

        Args:
            caller: who changes it.
            report: its `version` is the one that was changed; 0: it is new.

        Raises:
            UsageError: the name is not allowed.
            NotFound: there is no such report, or the caller does not see it.
            Conflict: it is there already, or was changed meanwhile.
            Refused: the caller may not change it, or has too many.
        """
        name = check_report_name(report.name)
        with self._database.write_transaction() as connection:
            present = _find(connection, report.user, name)
            if present is not None and not may_see(caller, report.user, present.team_project):
                present = None if report.user != caller.user else present
            if present is None and (report.version or report.user != caller.user):
                raise _report_absence(caller, report.user, name)
            former = report if present is None else present
            if not may_change(caller, report.user, former.team_project) or not may_change(
                caller, report.user, report.team_project
            ):
                raise Refused(f"the report {name} is not yours to change", f"{report.user} or an admin may do this")
            if present is not None and not report.version:
                raise Conflict(f"there is a report {name} already", "choose another name, or change that one")
            if present is not None and present.version != report.version:
                raise Conflict(
                    f"the report {name} was changed meanwhile: it has version {present.version} now",
                    "load it again, and repeat your change",
                )
            _check_number(connection, report.user, is_new=present is None)
            saved = report._replace(version=report.version + 1)
            connection.execute(reports.delete().where(reports.c.user == report.user, reports.c.name == name))
            connection.execute(reports.insert().values(**saved._asdict()))
        return saved

    def remove(self, caller: Caller, user: str, name: str) -> SavedReport:
        """Remove a report, and return it.

        Raises:
            NotFound: there is no such report, or the caller does not see it.
            Refused: the caller may not remove it.
        """
        with self._database.write_transaction() as connection:
            report = _find(connection, user, name)
            if report is None or not may_see(caller, user, report.team_project):
                raise _report_absence(caller, user, name)
            if not may_change(caller, user, report.team_project):
                raise Refused(f"the report {name} is not yours to change", f"{user} or an admin may do this")
            connection.execute(reports.delete().where(reports.c.user == user, reports.c.name == name))
        return report


def check_report_name(name: str) -> str:
    """Return a name of a report.

    Raises:
        UsageError: it is none.
    """
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name[:80]!r} is no name of a report",
            "it is a part of an address: write up to 64 small letters, digits and dashes, as in lr-sweep",
        )
    return name


def _find(connection: sa.Connection, user: str, name: str) -> SavedReport | None:
    columns = [reports.c[field] for field in SavedReport._fields]
    row = connection.execute(sa.select(*columns).where(reports.c.user == user, reports.c.name == name)).first()
    return None if row is None else SavedReport(*row)


def _check_number(connection: sa.Connection, user: str, *, is_new: bool) -> None:
    count = connection.execute(sa.select(sa.func.count()).where(reports.c.user == user)).scalar_one()
    if is_new and count >= MOST_REPORTS:
        raise Refused(f"{user} has {count:,} reports, and no more are kept", "delete some of them")


def _report_absence(caller: Caller, user: str, name: str) -> NotFound:
    """Return the error for a report that is not there, or that the caller does not see: the two answer alike."""
    address = name[:80] if user == caller.user else f"{user[:64]}.{name[:80]}"
    return NotFound(f"there is no report {address}", "`riseml report list` lists those that you see")
