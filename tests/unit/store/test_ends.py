"""The ends of experiments in order, each once, and where each reader is, in both kinds of store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from riseml.base.states import State
from riseml.store.database import Database
from riseml.store.ends import EndStore
from riseml.store.experiments import ExperimentStore
from riseml.store.totals import StoreTotals
from tests.unit.store.submissions import NOW
from tests.unit.store.test_experiment_pages import end, submit


def test_ends_and_positions(database: Database, experiments: ExperimentStore) -> None:
    ends = EndStore(database)
    assert ends.load_position("before", NOW) == 0
    assert ends.find_next(0) is None
    for _ in range(3):
        submit(experiments, "toaster", "0.1")
    end(experiments, 2, State.FAILED, 1)
    (detail,) = experiments.find_by_number("ann", 2)
    again = replace(detail.experiment, message="said again")
    assert experiments.save_decision(detail.experiment, again, NOW + timedelta(hours=2))
    end(experiments, 1, State.FINISHED, 3)
    first = ends.find_next(0)
    assert first is not None
    assert (first.number, first.state, first.project, first.ended_at) == (
        2,
        State.FAILED,
        "toaster",
        NOW + timedelta(hours=1),
    )
    second = ends.find_next(first.id)
    assert second is not None
    assert (second.number, second.state) == (1, State.FINISHED)
    assert ends.find_next(second.id) is None
    assert first.id <= ends.load_position("between", NOW + timedelta(hours=2, minutes=30)) < second.id
    ends.save_position("before", second.id)
    assert ends.load_position("before", NOW) == second.id
    ends.save_late("late", (second.id, first.id, first.id))
    assert (ends.load_late("late"), ends.load_late("before/late")) == ((first.id, second.id), ())
    ends.forget_others(["between"])
    assert ends.load_late("late") == ()
    assert ends.load_position("before", NOW) < first.id
    totals = StoreTotals(database)
    assert {state: count for state, count in totals.count_states().items() if count} == {
        State.CREATED: 1,
        State.FAILED: 1,
        State.FINISHED: 1,
    }
    assert totals.measure_size() > 0
