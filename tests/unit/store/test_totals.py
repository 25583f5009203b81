"""Numbers over the whole store, in both kinds of store."""

from __future__ import annotations

from dataclasses import replace

from riseml.base.states import State
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.totals import StoreTotals
from tests.unit.store.submissions import NOW, submit


def test_each_state_is_counted_and_each_experiment_of_a_set(database: Database, experiments: ExperimentStore) -> None:
    totals = StoreTotals(database)
    assert totals.count_states() == dict.fromkeys(State, 0)
    submit(experiments, count=3)
    ended = submit(experiments)
    assert experiments.save_decision(ended, replace(ended, state=State.FAILED, ended_at=NOW), NOW)
    counts = totals.count_states()
    assert (counts[State.CREATED], counts[State.FAILED], sum(counts.values())) == (3, 1, 4)


def test_the_store_is_larger_with_more_experiments(database: Database, experiments: ExperimentStore) -> None:
    totals = StoreTotals(database)
    before = totals.measure_size()
    for _ in range(3):
        submit(experiments, count=100)
    assert totals.measure_size() > before > 0
