"""Which experiments have changed since an event, in both kinds of store."""

from __future__ import annotations

from dataclasses import replace

from riseml.base.roles import Role, Scope
from riseml.base.states import State
from riseml.model import Caller, Owner
from riseml.store.changes import ChangeLog
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from tests.unit.store.submissions import NOW, submit


def test_an_experiment_has_changed_once_however_many_events_it_has(
    database: Database, experiments: ExperimentStore
) -> None:
    changes = ChangeLog(database)
    assert (changes.find_last_event(), changes.list_changed(0, 10)) == (0, ())
    first, other = submit(experiments), submit(experiments)
    assert sorted(changes.list_changed(0, 10)) == [first.id, other.id]
    assert len(changes.list_changed(0, 1)) == 1
    last = changes.find_last_event()
    assert changes.list_changed(last, 10) == ()
    assert experiments.save_decision(other, replace(other, state=State.BUILDING), NOW)
    assert changes.list_changed(last, 10) == (other.id,)
    assert changes.find_last_event() > last


def test_experiments_are_named_as_users_name_them(database: Database, experiments: ExperimentStore) -> None:
    single, member = submit(experiments), submit(experiments, count=2)
    keys = [single.id, member.id, 99]
    changes = ChangeLog(database)
    paul = Caller(Owner("paul", 1000, 1000), Role.MEMBER, Scope.READ)
    assert changes.name_experiments(keys, paul) == {single.id: "1", member.id: "2.1"}
    ann = replace(paul, owner=Owner("ann", 1001, 1001))
    assert changes.name_experiments(keys, ann) == {}
    assert changes.name_experiments(keys, replace(ann, role=Role.ADMIN)) == {single.id: "paul.1", member.id: "paul.2.1"}
