"""The database leaves out exactly what the rules hide."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from riseml.base.errors import NotFound, Refused
from riseml.base.roles import Role, Scope
from riseml.control.permissions import choose_team_project, may_change, may_see, sees_everything
from riseml.model import Caller, Owner
from riseml.planning.plan import first_jobs
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from tests.unit.control.simulation import make_plan

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
ANN = Owner("ann", 2001, 2001)
BOB = Owner("bob", 2002, 2002)
MEMBERSHIPS = [
    (),
    (("toaster", Role.VIEWER),),
    (("toaster", Role.MEMBER),),
    (("toaster", Role.MAINTAINER), ("x", Role.VIEWER)),
]
CALLERS = [
    Caller(owner, role, Scope.ADMIN, projects, bound)
    for owner, role, projects, bound in itertools.product(
        (ANN, BOB), (Role.VIEWER, Role.MEMBER, Role.ADMIN), MEMBERSHIPS, (None, "toaster", "x")
    )
]


def test_the_database_leaves_out_what_the_rules_hide(database: Database) -> None:
    store = ExperimentStore(database)
    plan = make_plan("train")
    stored = [(ANN, None), (ANN, "toaster"), (BOB, "toaster"), (BOB, "x")]
    for owner, team_project in stored:
        new = NewExperiments(owner, "p", "", "", ((plan, first_jobs(plan)),), team_project=team_project)
        store.add_experiments(new, NOW)
    numbers = {stored[at]: number for at, number in enumerate((1, 2, 1, 2))}
    for caller in CALLERS:
        for (owner, team_project), number in numbers.items():
            try:
                (detail,) = store.find_by_number(owner.user, number, None, caller)
                assert detail.experiment.team_project == team_project
                sees = True
            except NotFound:
                sees = False
            assert sees is may_see(caller, owner.user, team_project), (caller, owner, team_project)


@pytest.mark.parametrize(
    ("role", "membership", "user", "changes"),
    [
        (Role.VIEWER, Role.MAINTAINER, "ann", False),
        (Role.MEMBER, Role.VIEWER, "ann", True),
        (Role.MEMBER, Role.VIEWER, "bob", False),
        (Role.MEMBER, Role.MEMBER, "bob", False),
        (Role.MEMBER, Role.MAINTAINER, "bob", True),
        (Role.ADMIN, Role.VIEWER, "bob", True),
    ],
)
def test_who_changes_what_is_in_a_team_project(role: Role, membership: Role, user: str, *, changes: bool) -> None:
    caller = Caller(ANN, role, Scope.RUN, (("toaster", membership),))
    assert may_change(caller, user, "toaster") is changes
    assert not may_change(replace(caller, project="x"), user, "toaster"), "a key that is bound to another project"


def test_a_submission_belongs_to_a_team_project_of_a_member() -> None:
    caller = Caller(ANN, Role.MEMBER, Scope.RUN, (("toaster", Role.MEMBER), ("x", Role.VIEWER)))
    assert [choose_team_project(caller, name) for name in ("toaster", "x", "y")] == ["toaster", None, None]
    bound = replace(caller, project="toaster")
    assert choose_team_project(bound, "toaster") == "toaster"
    with pytest.raises(Refused, match="bound to the project toaster, and cannot submit to y"):
        choose_team_project(bound, "y")


def test_only_an_admin_whose_key_is_not_bound_sees_everything() -> None:
    assert [caller for caller in CALLERS if sees_everything(caller)] == [
        caller for caller in CALLERS if caller.role is Role.ADMIN and caller.project is None
    ]
