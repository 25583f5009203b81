"""Saved views: one default for each project and user, and who sees and removes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.errors import NotFound, Refused, UsageError
from riseml.base.roles import Role, Scope
from riseml.model import Caller, Owner
from riseml.store.database import Database
from riseml.store.table_views import LONGEST_QUERY, MOST_VIEWS, SavedTable, TableViewStore

QUERY = "sort=-accuracy&column=lr"


def make_caller(user: str, role: Role = Role.MEMBER, **projects: Role) -> Caller:
    return Caller(Owner(user, 0, 0), role, Scope.RUN, projects=tuple(projects.items()))


def make_view(user: str, name: str, *, default: bool = False, team: str | None = None) -> SavedTable:
    return SavedTable(user, "toaster", name, QUERY, default, team)


def list_names(saved: TableViewStore, caller: Caller) -> list[str]:
    return [view.name for view in saved.list_views(caller, "toaster")]


@pytest.fixture
def saved(database: Database) -> TableViewStore:
    return TableViewStore(database)


def test_a_view_takes_the_place_of_the_one_of_its_name(saved: TableViewStore) -> None:
    ann = make_caller("ann")
    for view in (make_view("ann", "b", default=True), make_view("ann", " a ", default=True), make_view("ann", "b")):
        saved.save(ann, view)
    found = saved.list_views(ann, "toaster")
    assert [(view.name, view.is_default, view.query) for view in found] == [("a", True, QUERY), ("b", False, QUERY)]
    assert saved.list_views(ann, "") == []
    assert saved.remove(ann, "ann", "toaster", "a").is_default
    assert list_names(saved, ann) == ["b"]


def test_members_of_a_team_project_see_its_views(saved: TableViewStore) -> None:
    ann = make_caller("ann", toaster=Role.MEMBER)
    saved.save(ann, make_view("ann", "of ann", team="toaster"))
    saved.save(make_caller("bob"), make_view("bob", "of bob"))
    seen = {
        user: list_names(saved, make_caller(user, role, **projects))
        for user, role, projects in (
            ("ann", Role.MEMBER, {"toaster": Role.MEMBER}),
            ("eve", Role.MEMBER, {"toaster": Role.VIEWER}),
            ("bob", Role.MEMBER, {}),
            ("root", Role.ADMIN, {}),
        )
    }
    assert seen == {"ann": ["of ann"], "eve": ["of ann"], "bob": ["of bob"], "root": ["of ann", "of bob"]}
    with pytest.raises(Refused, match="belongs to ann"):
        saved.remove(make_caller("eve", toaster=Role.MEMBER), "ann", "toaster", "of ann")
    hidden = [pytest.raises(NotFound, match="there is no view") for _ in range(2)]
    for expected, name in zip(hidden, ("of ann", "of nobody"), strict=True):
        with expected:
            saved.remove(make_caller("bob"), "ann", "toaster", name)
    saved.remove(make_caller("max", toaster=Role.MAINTAINER), "ann", "toaster", "of ann")


def test_an_admin_sees_views_of_others_but_begins_with_none(saved: TableViewStore) -> None:
    saved.save(make_caller("ann"), make_view("ann", "private", default=True))
    saved.save(make_caller("bob", toaster=Role.MEMBER), make_view("bob", "shared", default=True, team="toaster"))
    views = saved.list_views(make_caller("root", Role.ADMIN), "toaster")
    assert [(view.name, view.is_default) for view in views] == [("private", False), ("shared", True)]


def test_a_bound_key_replaces_no_view_that_it_does_not_see(saved: TableViewStore) -> None:
    saved.save(make_caller("ann"), make_view("ann", "mine"))
    bound = replace(make_caller("ann", toaster=Role.MEMBER), project="toaster")
    with pytest.raises(Refused, match="may not replace the view mine"):
        saved.save(bound, make_view("ann", "mine", team="toaster"))
    assert list_names(saved, bound) == []


@pytest.mark.parametrize("name", ["", "  ", "x" * 65, "two\nlines", "\x1b[2J"])
def test_names_are_for_people(saved: TableViewStore, name: str) -> None:
    with pytest.raises(UsageError, match="no name of a view"):
        saved.save(make_caller("ann"), make_view("ann", name))


def test_views_have_a_size_and_a_number(saved: TableViewStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = make_caller("ann")
    with pytest.raises(UsageError, match="8,001 characters"):
        saved.save(ann, make_view("ann", "long")._replace(query="x" * (LONGEST_QUERY + 1)))
    with pytest.raises(Refused, match="may not save"):
        saved.save(make_caller("ann", Role.VIEWER), make_view("ann", "mine"))
    assert MOST_VIEWS >= 200
    monkeypatch.setattr("riseml.store.table_views.MOST_VIEWS", 1)
    saved.save(ann, make_view("ann", "first"))
    with pytest.raises(Refused, match="has 1 views"):
        saved.save(ann, make_view("ann", "second"))
    assert saved.save(ann, make_view("ann", "first", default=True)).is_default, "it takes the place of the other"
