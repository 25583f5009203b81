"""Team projects and their members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import Conflict, NotFound, UsageError
from riseml.base.roles import Role, Scope
from riseml.base.states import State
from riseml.model import Caller, Owner
from riseml.planning.plan import first_jobs
from riseml.store.accounts import AccountStore, KeyRequest, User
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.key_digests import KeyDigests
from riseml.store.table_views import SavedTable, TableViewStore
from riseml.store.team_projects import TeamProject, TeamProjectStore
from tests.unit.store.submissions import NOW, PLAN


@pytest.fixture
def projects(database: Database) -> TeamProjectStore:
    return TeamProjectStore(database)


@pytest.fixture
def accounts(database: Database, tmp_path: Path) -> AccountStore:
    store = AccountStore(database, KeyDigests(tmp_path))
    for name in "ann", "paul":
        store.add_user(User(name, Role.MEMBER, NOW))
    return store


@pytest.mark.usefixtures("accounts")
def test_members_come_and_go_and_change_their_roles(projects: TeamProjectStore) -> None:
    projects.add_project("vision", NOW)
    projects.add_project("audio", NOW, is_open=True)
    projects.put_member("vision", "paul", Role.VIEWER)
    projects.put_member("vision", "ann", Role.MAINTAINER)
    for _ in range(2):
        shown = projects.put_member("vision", "paul", Role.MEMBER)
    vision = TeamProject("vision", NOW, members=(("ann", Role.MAINTAINER), ("paul", Role.MEMBER)))
    audio = TeamProject("audio", NOW, open=True)
    assert shown == vision == projects.load_project("vision")
    assert projects.list_projects() == [audio, vision]
    assert projects.remove_member("vision", "ann").members == (("paul", Role.MEMBER),)
    assert projects.open_project("vision", is_open=True).open
    assert not projects.open_project("vision", is_open=False).open


@pytest.mark.usefixtures("accounts")
def test_a_user_sees_their_projects_and_open_ones(projects: TeamProjectStore) -> None:
    for name, is_open in (("audio", True), ("hidden", False), ("vision", True), ("words", False)):
        projects.add_project(name, NOW, is_open=is_open)
    projects.put_member("vision", "paul", Role.MAINTAINER)
    projects.put_member("words", "paul", Role.MEMBER)
    projects.put_member("words", "ann", Role.MEMBER)
    everybody = ("audio", Role.VIEWER)
    assert projects.load_memberships("paul") == (everybody, ("vision", Role.MAINTAINER), ("words", Role.MEMBER))
    assert projects.load_memberships("nobody") == (everybody, ("vision", Role.VIEWER))


def test_experiments_of_a_removed_project_are_their_users_alone(
    projects: TeamProjectStore, experiments: ExperimentStore
) -> None:
    """A later project of the same name would show them to its members."""
    projects.add_project("vision", NOW)
    projects.add_project("audio", NOW)
    plans = ((PLAN, first_jobs(PLAN)),)
    owner = Owner("paul", 2001, 2001)
    shared = [
        experiments.add_experiments(NewExperiments(owner, name, "", "", plans, team_project=name), NOW)[0][0].experiment
        for name in ("vision", "audio")
    ]
    assert [one.team_project for one in experiments.load_world().experiments] == ["vision", "audio"]
    projects.remove_project("vision", NOW)
    assert [one.team_project for one in experiments.load_world().experiments] == [None, "audio"], "for quotas, too"
    loaded = [experiments.find_by_number("paul", one.number)[0].experiment for one in shared]
    assert [one.team_project for one in loaded] == [None, "audio"]
    ended = replace(loaded[0], state=State.FINISHED, closed=True, ended_at=NOW)
    assert experiments.save_decision(shared[0], ended, NOW), "the version of the record is the one that the loop read"


def test_a_removed_project_ends_its_keys_and_memberships(projects: TeamProjectStore, accounts: AccountStore) -> None:
    for name in "vision", "audio":
        projects.add_project(name, NOW)
        projects.put_member(name, "paul", Role.MEMBER)
    bound, other, free = (
        accounts.add_key(KeyRequest("paul", project=project), NOW) for project in ("vision", "audio", None)
    )
    projects.remove_project("vision", NOW)
    assert projects.list_projects() == [TeamProject("audio", NOW, members=(("paul", Role.MEMBER),))]
    holders = [accounts.find_holder(made.secret) for made in (bound, other, free)]
    assert [holder.is_valid(NOW) for holder in holders if holder] == [False, True, True]
    assert {holder.projects for holder in holders if holder} == {(("audio", Role.MEMBER),)}
    assert projects.add_project("vision", NOW).members == (), "a project of the same name begins without members"


def test_a_later_project_of_the_same_name_shows_no_views(projects: TeamProjectStore, database: Database) -> None:
    views = TableViewStore(database)
    of_vision = (("vision", Role.MEMBER),)
    ann, eve = (Caller(Owner(user, 0, 0), Role.MEMBER, Scope.RUN, of_vision) for user in ("ann", "eve"))
    projects.add_project("vision", NOW)
    views.save(ann, SavedTable("ann", "vision", "secret search", "sort=lr", is_default=False, team_project="vision"))
    projects.remove_project("vision", NOW)
    projects.add_project("vision", NOW)
    assert [view.name for view in views.list_views(ann, "vision")] == ["secret search"]
    assert views.list_views(eve, "vision") == []


@pytest.mark.usefixtures("accounts")
def test_what_is_not_there_or_not_allowed_is_said(projects: TeamProjectStore) -> None:
    projects.add_project("vision", NOW)
    with pytest.raises(Conflict, match="a project vision already"):
        projects.add_project("vision", NOW)
    for name in "Vision", "", "a/b":
        with pytest.raises(UsageError, match="not a name for a project"):
            projects.add_project(name, NOW)
    with pytest.raises(UsageError, match="admin is not a role in a project"):
        projects.put_member("vision", "paul", Role.ADMIN)
    with pytest.raises(NotFound, match="no user bob"):
        projects.put_member("vision", "bob", Role.MEMBER)
    with pytest.raises(NotFound, match="ann is not a member of vision"):
        projects.remove_member("vision", "ann")
    asks: list[Callable[[], object]] = [
        lambda: projects.load_project("x"),
        lambda: projects.remove_project("x", NOW),
        lambda: projects.open_project("x", is_open=True),
        lambda: projects.put_member("x", "paul", Role.MEMBER),
        lambda: projects.remove_member("x", "paul"),
    ]
    for ask in asks:
        with pytest.raises(NotFound, match="there is no project x"):
            ask()
