"""Counts of metrics as rows: saved together, loaded as they were, in both kinds of store."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_history import MetricHistory
from riseml.store.metrics.metric_rows import MetricRows
from riseml.store.metrics.metric_summary import MetricCount
from tests.unit.store.metrics.tally_rows import ODD_NAME, count
from tests.unit.store.submissions import submit


def make_history(*values: float) -> str:
    """Return the buckets of a history, as they are saved."""
    loss = MetricCount("loss")
    for step, value in enumerate(values):
        loss.add(value, step, "2026-08-31T07:23:46Z", 1)
    return json.dumps(loss.history.to_rows())


def test_a_tally_is_loaded_as_it_was_saved_last(database: Database, experiments: ExperimentStore) -> None:
    first, other = submit(experiments), submit(experiments)
    rows = MetricRows(database)
    tally = replace(count(first.id, 0.5, math.inf), counted=ReadPosition(700, 30), complete=False, dropped=3)
    rows.save_tallies([(tally, {}), (count(other.id, 1.0), {})])
    tally = replace(tally, slow=frozenset({"loss"}))
    rows.save_tallies([(tally, {})])
    loaded = rows.load_tallies([first.id, other.id, 99])
    assert set(loaded) == {first.id, other.id}
    assert repr(loaded[first.id]) == repr(tally)
    assert set(rows.load_complete([first.id, other.id])) == {other.id}
    assert rows.load_complete([other.id])[other.id][ODD_NAME].last == -1.0


def test_histories_are_those_of_their_metric(database: Database, experiments: ExperimentStore) -> None:
    made = submit(experiments)
    rows = MetricRows(database)
    rows.save_tallies([(count(made.id, 0.5, 0.25), {"loss": make_history(0.5), ODD_NAME: make_history(-0.5)})])
    rows.save_tallies([(count(made.id, 0.5, 0.25), {"loss": make_history(0.5, 0.25)})])
    assert json.dumps(rows.load_history(made.id, "loss").to_rows()) == make_history(0.5, 0.25)
    assert rows.load_history(made.id, "accuracy").to_rows() == MetricHistory().to_rows()
    assert set(rows.load_histories(made.id)) == {"loss", ODD_NAME}
    assert set(rows.load_histories_of([made.id, 99], "loss")) == {made.id}


def test_an_experiment_is_incomplete_until_its_whole_log_is_counted(
    database: Database, experiments: ExperimentStore
) -> None:
    made = submit(experiments)
    rows = MetricRows(database)
    assert rows.list_incomplete() == {made.id: False}
    rows.save_tallies([(replace(count(made.id, 0.5), complete=False), {"loss": make_history(0.5)})])
    assert rows.list_incomplete() == {made.id: False}
    rows.save_tallies([(count(made.id, 0.5), {})])
    assert rows.list_incomplete() == {}
    rows.delete_tally(made.id)
    assert (rows.list_incomplete(), rows.load_histories(made.id)) == ({made.id: False}, {})
