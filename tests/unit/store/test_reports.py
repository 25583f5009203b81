"""Reports in the store: their versions, and who sees, changes and removes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.errors import Conflict, NotFound, Refused, UsageError
from riseml.base.roles import Role, Scope
from riseml.model import Caller, Owner
from riseml.store.database import Database
from riseml.store.reports import ReportStore, SavedReport
from riseml.store.team_projects import TeamProjectStore
from tests.unit.store.submissions import NOW


def make_caller(user: str, role: Role = Role.MEMBER, **projects: Role) -> Caller:
    return Caller(Owner(user, 0, 0), role, Scope.RUN, projects=tuple(projects.items()))


def make_report(user: str, name: str = "sweep", team: str | None = None, version: int = 0) -> SavedReport:
    return SavedReport(user, name, team or "", team, "Title", "# Title", version, NOW)


ANN = make_caller("ann", vision=Role.MEMBER)


@pytest.fixture
def kept(database: Database) -> ReportStore:
    return ReportStore(database)


def test_a_change_is_made_to_the_version_that_its_user_has_read(kept: ReportStore) -> None:
    assert kept.save(ANN, make_report("ann")).version == 1
    with pytest.raises(Conflict, match="there is a report sweep already"):
        kept.save(ANN, make_report("ann"))
    changed = kept.save(ANN, make_report("ann", version=1)._replace(text="other"))
    assert (changed.version, kept.load(ANN, "ann", "sweep").text) == (2, "other")
    with pytest.raises(Conflict, match="was changed meanwhile: it has version 2"):
        kept.save(ANN, make_report("ann", version=1))
    with pytest.raises(NotFound, match="there is no report gone"):
        kept.save(ANN, make_report("ann", "gone", version=1))
    assert [(one.name, one.version, one.text) for one in kept.list_reports(ANN)] == [("sweep", 2, "")]
    assert kept.remove(ANN, "ann", "sweep").text == "other"
    assert kept.list_reports(ANN) == []


def test_members_of_a_team_project_see_its_reports_and_maintainers_change_them(kept: ReportStore) -> None:
    kept.save(ANN, make_report("ann", "shared", "vision"))
    kept.save(ANN, make_report("ann", "own"))
    for caller, seen, changes in (
        (make_caller("bob"), [], False),
        (make_caller("eve", vision=Role.VIEWER), ["shared"], False),
        (make_caller("max", vision=Role.MAINTAINER), ["shared"], True),
        (make_caller("root", Role.ADMIN), ["own", "shared"], True),
    ):
        assert [one.name for one in kept.list_reports(caller)] == seen, caller.user
        version = kept.load(ANN, "ann", "shared").version
        change = make_report("ann", "shared", "vision", version)
        if changes:
            assert kept.save(caller, change).user == "ann"
            continue
        error = Refused if seen else NotFound
        with pytest.raises(error):
            kept.save(caller, change)
        with pytest.raises(error):
            kept.remove(caller, "ann", "shared")
    bob = make_caller("bob")
    with pytest.raises(NotFound) as hidden:
        kept.load(bob, "ann", "own")
    with pytest.raises(NotFound) as absent:
        kept.load(bob, "ann", "xyz")
    assert hidden.value.message.replace("own", "xyz") == absent.value.message
    with pytest.raises(NotFound):
        kept.save(bob, make_report("ann", "new"))  # nobody writes in another user's name


def test_a_key_of_a_project_replaces_no_report_that_it_does_not_see(kept: ReportStore) -> None:
    kept.save(ANN, make_report("ann"))
    bound = replace(ANN, project="vision")
    assert kept.list_reports(bound) == []
    with pytest.raises(Refused):
        kept.save(bound, make_report("ann", team="vision"))
    assert kept.load(ANN, "ann", "sweep").version == 1


def test_reports_of_a_removed_project_are_those_of_their_users(kept: ReportStore, database: Database) -> None:
    projects = TeamProjectStore(database)
    projects.add_project("vision", NOW)
    kept.save(ANN, make_report("ann", "shared", "vision"))
    projects.remove_project("vision", NOW)
    assert kept.list_reports(make_caller("eve", vision=Role.VIEWER)) == []
    assert [one.name for one in kept.list_reports(ANN)] == ["shared"]


@pytest.mark.parametrize("name", ["", "Big", "a b", "-a", "a/b", "a.b", "x" * 65, "\u00e4", "a\n"])
def test_a_name_is_a_part_of_an_address(kept: ReportStore, name: str) -> None:
    with pytest.raises(UsageError, match="is no name of a report"):
        kept.save(ANN, make_report("ann", name))


def test_reports_have_a_number(kept: ReportStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.store.reports.MOST_REPORTS", 1)
    kept.save(ANN, make_report("ann"))
    with pytest.raises(Refused, match="ann has 1 reports, and no more are kept"):
        kept.save(ANN, make_report("ann", "second"))
    kept.save(ANN, make_report("ann", version=1))
