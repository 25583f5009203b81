"""Experiments in the store: records are loaded as they were saved, and outdated decisions are dropped."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from riseml.base.errors import NotFound
from riseml.base.states import State, Wanted
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from tests.unit.store.submissions import NOW, submit


def test_a_record_is_loaded_as_it_was_saved(database: Database, experiments: ExperimentStore) -> None:
    made = submit(experiments)
    after = replace(made, state=State.RUNNING, jobs=tuple(replace(job, started_at=NOW) for job in made.jobs))
    assert experiments.save_decision(made, after, NOW)
    for store in (experiments, ExperimentStore(database)):
        assert store.load_world().experiments == (replace(after, version=made.version + 1),)
        assert store.get_record(made.id) == replace(after, version=made.version + 1)


def test_variables_are_not_remembered_once_no_job_needs_them(database: Database, experiments: ExperimentStore) -> None:
    made = submit(experiments, environment=(("KEY", "a secret"),))
    ended = tuple(replace(job, state=State.FINISHED, ended_at=NOW) for job in made.jobs)
    after = replace(made, state=State.FINISHED, ended_at=NOW, jobs=ended)
    assert made.needs_variables and not after.needs_variables
    assert experiments.save_decision(made, after, NOW)
    for store in (experiments, ExperimentStore(database)):
        (stored,) = store.load_world().experiments
        assert stored == replace(after, environment=(), version=made.version + 1)


def test_a_pass_reads_nothing_again_that_it_has_saved_itself(database: Database, experiments: ExperimentStore) -> None:
    made = submit(experiments)
    assert experiments.save_decision(made, replace(made, state=State.RUNNING), NOW)
    queries: list[str] = []
    sa.event.listen(database.engine, "before_cursor_execute", lambda _, cursor, query, *more: queries.append(query))
    (record,) = experiments.load_world().experiments
    assert record.state is State.RUNNING
    assert [query for query in queries if "config" in query] == []
    experiments.request_kill([made.id])
    assert experiments.get_record(made.id).wanted is Wanted.KILL, "it was changed meanwhile"


def test_the_text_of_an_experiment_can_be_read_alone(experiments: ExperimentStore) -> None:
    assert experiments.read_config(submit(experiments).id) == "project: toaster"
    for read in (experiments.read_config, experiments.get_record):
        with pytest.raises(NotFound, match="no experiment with the key 99"):
            read(99)


def test_a_decision_on_an_old_record_is_dropped(experiments: ExperimentStore) -> None:
    made = submit(experiments)
    experiments.request_kill([made.id])
    assert not experiments.save_decision(made, replace(made, state=State.RUNNING), NOW)
    (found,) = experiments.load_world().experiments
    assert found.wanted is Wanted.KILL
    assert found.state is State.CREATED


def test_every_change_of_state_is_an_event(experiments: ExperimentStore) -> None:
    made = submit(experiments)
    before = len(experiments.read_events(made.id, 0))
    after = replace(made, state=State.BUILDING, jobs=(replace(made.jobs[0], state=State.STARTING), *made.jobs[1:]))
    experiments.save_decision(made, after, NOW)
    fresh = experiments.read_events(made.id, 0)[before:]
    assert [(event.job, event.state) for event in fresh] == [("build", State.STARTING), (None, State.BUILDING)]


def test_the_next_load_has_what_another_process_wrote(database: Database, experiments: ExperimentStore) -> None:
    other = ExperimentStore(database)
    first, second = submit(experiments), submit(experiments)
    assert experiments.load_world() == other.load_world()
    assert experiments.save_decision(first, replace(first, state=State.RUNNING), NOW)
    experiments.request_kill([second.id])
    third = submit(experiments)
    for store in (other, experiments, ExperimentStore(database)):
        found = store.load_world().experiments
        assert [one.id for one in found] == [first.id, second.id, third.id]
        assert [one.state for one in found] == [State.RUNNING, State.CREATED, State.CREATED]
        assert [one.wanted for one in found] == [Wanted.RUN, Wanted.KILL, Wanted.RUN]
    again = other.load_world()
    assert all(one is two for one, two in zip(again.experiments, other.load_world().experiments, strict=True))


def test_an_experiment_that_has_ended_is_not_active_before_it_is_closed(experiments: ExperimentStore) -> None:
    assert experiments.count_unfinished() == (0, 0)
    made = submit(experiments)
    submit(experiments)
    assert experiments.count_unfinished() == (2, 0)
    ended = replace(made, state=State.FINISHED, ended_at=NOW)
    assert experiments.save_decision(made, ended, NOW)
    assert (experiments.count_unfinished(), experiments.count_open()) == ((1, 1), 2)


def test_closed_experiments_are_not_loaded_and_can_be_found(experiments: ExperimentStore) -> None:
    made = submit(experiments)
    experiments.save_decision(made, replace(made, closed=True, state=State.FINISHED, ended_at=NOW), NOW)
    assert experiments.load_world().experiments == ()
    assert experiments.count_open() == 0
    assert experiments.find_by_number("paul", 1)[0].experiment.closed
    assert experiments.list_experiments("paul", ended=False, project=None, limit=None) == ()
    assert len(experiments.list_experiments("paul", ended=True, project="toaster", limit=1)) == 1


def test_a_list_comes_in_pages(experiments: ExperimentStore) -> None:
    for _ in range(5):
        submit(experiments)
    pages = []
    before = None
    while page := experiments.list_experiments("paul", ended=True, project=None, limit=2, before=before):
        pages.append([one.experiment.number for one in page])
        before = page[0].experiment.number
    assert pages == [[4, 5], [2, 3], [1]]


def test_an_unknown_number_is_not_found(experiments: ExperimentStore) -> None:
    with pytest.raises(NotFound, match="no experiment 7"):
        experiments.find_by_number("paul", 7)


def test_the_server_keeps_its_id(store: str) -> None:
    first, again = Database(store), Database(store)
    assert ExperimentStore(first).load_server_id() == ExperimentStore(again).load_server_id()
    first.close()
    again.close()
