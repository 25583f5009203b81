"""The values of variables are gone from the store, and from SQLite's files, when an experiment is closed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from riseml.base.states import State
from riseml.model import Experiment, Owner
from riseml.planning.plan import first_jobs
from riseml.spec.config.types import SaveSection
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.schema import experiments as table
from tests.support.stores import go_back
from tests.unit.control.simulation import change_policy, make_plan

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
PLAN = make_plan("master", "worker.1")
CANARY = "canary-5a1d77-"


def submit(experiments: ExperimentStore, number: int = 0) -> Experiment:
    """Store an experiment whose secret has some length."""
    secret = f"{CANARY}{number}-" * (1 + number * 37 % 200)
    variables = (("TOKEN", secret), ("NAME", "toaster"))
    submitted = NewExperiments(
        Owner("paul", 1000, 1000), "toaster", "project: a", "", ((PLAN, first_jobs(PLAN)),), environment=variables
    )
    return experiments.add_experiments(submitted, NOW)[0][0].experiment


def close(experiments: ExperimentStore, made: Experiment) -> None:
    assert experiments.save_decision(made, replace(made, closed=True, state=State.FINISHED, ended_at=NOW), NOW)


def find_canary(folder: Path) -> list[str]:
    """Return the database's files that hold a secret."""
    return [path.name for path in sorted(folder.glob("riseml.db*")) if CANARY.encode() in path.read_bytes()]


def test_a_closed_experiment_has_no_values(database: Database, experiments: ExperimentStore) -> None:
    made, other = submit(experiments), submit(experiments, 1)
    close(experiments, made)
    assert experiments.get_experiment(made.id).experiment.environment == ()
    assert experiments.get_experiment(other.id).experiment.environment[1] == ("NAME", "toaster")
    assert experiments.finish_erasing()
    with database.read_transaction() as connection:
        assert connection.execute(sa.select(table.c.environment).where(table.c.id == made.id)).scalar() == []


def end(made: Experiment, **keys: Any) -> Experiment:
    jobs = tuple(replace(job, state=State.KILLED, ended_at=NOW) for job in made.jobs)
    return replace(made, jobs=jobs, state=State.KILLED, ended_at=NOW, **keys)


def test_the_values_are_gone_with_the_last_job_of_an_experiment_that_stays_open(experiments: ExperimentStore) -> None:
    made = submit(experiments)
    ended = end(made)
    running = replace(ended, jobs=(*ended.jobs[:-1], made.jobs[-1]))
    saving = end(made, plan=change_policy(made.plan, save=SaveSection("s3://bucket/x")))
    assert (running.needs_variables, saving.needs_variables, ended.needs_variables) == (True, True, False)
    assert experiments.save_decision(made, running, NOW)
    (again,) = experiments.load_world().experiments
    assert again.environment == made.environment
    assert experiments.save_decision(again, replace(end(again), version=again.version), NOW)
    (last,) = experiments.load_world().experiments
    assert (last.environment, last.closed) == ((), False)
    assert experiments.finish_erasing()


def test_an_experiment_that_is_tried_again_keeps_its_values(experiments: ExperimentStore) -> None:
    made = submit(experiments)
    failed = replace(made, jobs=tuple(replace(job, attempt=2) for job in made.jobs))
    assert experiments.save_decision(made, failed, NOW)
    assert experiments.load_world().experiments[0].environment == made.environment


def test_no_byte_is_left_in_the_files_of_sqlite(tmp_path: Path) -> None:
    """Rows grow, shrink and move from page to page before they are closed."""
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    experiments = ExperimentStore(database)
    made = [submit(experiments, number) for number in range(60)]
    for round_number in range(1, 4):
        grown = [replace(one, message="x" * (one.id * 211 % 3000 * round_number)) for one in made]
        for old, new in zip(made, grown, strict=True):
            assert experiments.save_decision(old, new, NOW)
        made = [replace(one, version=one.version + 1) for one in grown]
    assert find_canary(tmp_path)
    for one in sorted(made, key=lambda one: one.id * 17 % 61):
        close(experiments, one)
    assert "riseml.db-wal" in find_canary(tmp_path)
    assert experiments.finish_erasing()
    assert find_canary(tmp_path) == []
    database.close()


def test_a_reader_only_delays_the_end(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    experiments = ExperimentStore(database)
    made = submit(experiments)
    with database.read_transaction() as connection:
        connection.execute(sa.select(table.c.id)).all()
        close(experiments, made)
        assert not experiments.finish_erasing()
    assert experiments.finish_erasing()
    assert find_canary(tmp_path) == []
    database.close()


def test_a_server_that_was_killed_before_the_end_finishes_at_its_start(tmp_path: Path) -> None:
    killed = Database(f"sqlite:///{tmp_path}/riseml.db")
    experiments = ExperimentStore(killed)
    close(experiments, submit(experiments))
    assert find_canary(tmp_path)
    after = Database(f"sqlite:///{tmp_path}/riseml.db")  # the first one still has the files open, as after a kill
    assert find_canary(tmp_path) == []
    after.close()
    killed.close()


@pytest.mark.parametrize("closed", [True, False])
def test_what_an_earlier_version_kept_is_erased(tmp_path: Path, closed: bool) -> None:  # noqa: FBT001  # a parameter of pytest
    path = tmp_path / "riseml.db"
    database = Database(f"sqlite:///{path}")
    experiments = ExperimentStore(database)
    made = submit(experiments)
    with database.write_transaction() as connection:
        connection.execute(table.update().values(closed=closed))
        go_back(connection, "0004")
    database.close()
    assert find_canary(tmp_path) == ["riseml.db"]
    database = Database(f"sqlite:///{path}")
    found = ExperimentStore(database).get_experiment(made.id).experiment
    assert found.environment == (() if closed else made.environment)
    assert find_canary(tmp_path) == ([] if closed else ["riseml.db"])
    database.close()
