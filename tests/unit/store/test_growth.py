"""Frequent queries cost the same however many experiments have ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from benchmarks.growth import copy_first_experiment
from riseml.base.states import Reason, State
from riseml.model import Owner
from riseml.planning.plan import first_jobs
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from tests.unit.control.simulation import make_plan

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
PLAN = make_plan("master", "worker.1")
ASKED: dict[str, Callable[[ExperimentStore], object]] = {
    "load_world": lambda store: store.load_world(),
    "count_open": lambda store: store.count_open(),
    "count_unfinished": lambda store: store.count_unfinished(),
    "status": lambda store: store.list_experiments("paul", ended=False, project=None, limit=None),
    "the last of a project": lambda store: store.list_experiments("paul", ended=True, project="p", limit=1),
    "one": lambda store: store.find_by_number("paul", 1),
    "its events": lambda store: store.read_events(1, 0),
}


def steps(path: Path, ask: Callable[[ExperimentStore], object]) -> int:
    """Return how many hundreds of instructions SQLite executes for a query."""
    database = Database(f"sqlite:///{path}")
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    with database.read_transaction() as connection:
        raw = connection.connection.dbapi_connection
        assert raw is not None
        raw.set_progress_handler(tick, 100)
    ask(ExperimentStore(database))
    return count


@pytest.mark.parametrize("name", ASKED)
def test_a_query_costs_the_same_after_many_ended_experiments(tmp_path: Path, name: str) -> None:
    path = tmp_path / "riseml.db"
    store = ExperimentStore(Database(f"sqlite:///{path}"))
    submitted = NewExperiments(Owner("paul", 1, 1), "p", "", "", ((PLAN, first_jobs(PLAN)),))
    store.add_experiments(submitted, NOW)
    first = store.load_world().experiments[0]
    ended = replace(first, state=State.FINISHED, reason=Reason.COMPLETED, closed=True, ended_at=NOW)
    assert store.save_decision(first, ended, NOW)
    copy_first_experiment(path, 20)
    few = steps(path, ASKED[name])
    copy_first_experiment(path, 2000)
    store.add_experiments(submitted, NOW)
    assert steps(path, ASKED[name]) <= few + 10


def test_the_steps_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "riseml.db"
    Database(f"sqlite:///{path}")

    def look(store: ExperimentStore) -> None:
        with store._database.read_transaction() as connection:
            connection.execute(
                sa.text("WITH RECURSIVE n(x) AS (SELECT 1 UNION SELECT x+1 FROM n LIMIT 9999) SELECT sum(x) FROM n")
            )

    assert steps(path, look) > 100
