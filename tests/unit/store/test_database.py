"""The database: migrations create the tables of the code, and damage is reported."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import riseml.store
from riseml.base.errors import StoreError
from riseml.base.names import JobName
from riseml.base.states import JobDuty, State
from riseml.model import Job, Owner
from riseml.spec.config.types import (
    DEFAULT_POLICY,
    DataSource,
    MetricCondition,
    NotifySection,
    Relation,
    Resources,
    Retry,
    RetryOn,
    RetryScope,
    RunPolicy,
    SaveSection,
)
from riseml.store.codec import to_json
from riseml.store.database import NEWEST_MIGRATION, Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.milestones import MilestoneStore
from riseml.store.schema import experiments as tables
from riseml.store.schema import jobs as job_table
from riseml.store.schema import metadata, sets
from riseml.store.searches import SearchStore
from tests.support.stores import drop_later_columns, flatten_plans
from tests.unit.store.submissions import NOW, PLAN, submit


def test_a_new_store_has_the_tables_that_the_migrations_create(database: Database) -> None:
    fresh = describe_tables(database)
    with database.write_transaction() as connection:
        metadata.drop_all(connection)
        connection.execute(sa.text("DROP TABLE alembic_version"))
    database._run_migrations()
    assert describe_tables(database) == fresh
    with database.read_transaction() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert compare_metadata(context, metadata) == []


def describe_tables(database: Database) -> dict[str, object]:
    """Return the columns, keys and indexes of every table, and the version that the store names."""
    with database.read_transaction() as connection:
        seen = sa.inspect(connection)
        found: dict[str, object] = {}
        for table in seen.get_table_names():
            rows = seen.get_columns(table)
            columns = {one["name"]: (str(one["type"]), one["nullable"], one["default"]) for one in rows}
            keys = (seen.get_pk_constraint(table), seen.get_foreign_keys(table))
            indexes = sorted(map(str, (*seen.get_unique_constraints(table), *seen.get_indexes(table))))
            found[table] = (columns, str(keys), indexes)
        found["version"] = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        return found


def test_the_newest_migration_is_the_one_that_the_code_names() -> None:
    folder = Path(riseml.store.__file__).parent / "migrations"
    assert ScriptDirectory(str(folder)).get_heads() == [NEWEST_MIGRATION]


def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "riseml.db").write_bytes(b"this is not a database at all" * 100)
    with pytest.raises(StoreError, match="is damaged"):
        Database(f"sqlite:///{tmp_path}/riseml.db")


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "riseml.db"
    database = Database(f"sqlite:///{path}")
    for _ in range(200):
        submit(ExperimentStore(database))
    with database.write_transaction() as connection:
        connection.commit()
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("BEGIN")
    database.close()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff" * 20_000)
    with pytest.raises(StoreError, match="is damaged"):
        Database(f"sqlite:///{path}")


def test_a_newer_store_is_refused(database: Database, store: str) -> None:
    with database.write_transaction() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    with pytest.raises(StoreError, match="newer riseml"):
        Database(store)


POLICY = RunPolicy(
    shm_size=128,
    stop_grace=3.5,
    max_duration=86400,
    idle_timeout=60,
    retry=Retry(2, frozenset({RetryOn.IDLE, RetryOn.HOST_LOST}), RetryScope.ROLE),
    priority=-5,
    metrics=(("accuracy", "acc: ([0-9.]+)"),),
    data=(DataSource("s3://data/mnist", "mnist"),),
    store="lab",
    notify=NotifySection((State.FAILED,), (MetricCondition("loss", Relation.BELOW, 0.1),), ("team",)),
    save=SaveSection("s3://runs", 60, ("*.pt",), restore=True),
    variables=(("lr", "MY_LR"), ("größe", "")),
    outputs=("runs/**",),
)


def test_the_keys_of_a_plan_are_kept_from_an_earlier_version(database: Database, store: str) -> None:
    """0013 had them beside the other fields of the plan; a still earlier version had fewer of them."""
    later = {"secrets", "track", "log", "on", "inputs", "stall"}  # keys of later versions
    names = {field.name for field in fields(RunPolicy)} - later
    assert all(getattr(POLICY, name) != getattr(DEFAULT_POLICY, name) for name in names)
    plan = replace(PLAN, policy=POLICY, parameters=(("größe", "ä"),))
    jobs = (Job(JobName("train"), JobDuty.DECIDES, Resources()),)
    submitted = NewExperiments(Owner("paul", 1, 1), "toaster", "", "", ((plan, jobs),) * 201, concurrency=2)
    ExperimentStore(database).add_experiments(submitted, NOW)
    with database.write_transaction() as connection:
        connection.execute(sets.update().values(templates=[[[["lr", "0.1"]], to_json(plan)]]))
        flatten_plans(connection)
        old = connection.execute(sa.select(tables.c.plan).where(tables.c.id == 1)).scalar() or {}
        assert (old["priority"], "policy" in old) == (-5, False)
        older = {name: value for name, value in old.items() if name not in ("outputs", "save")}
        connection.execute(tables.update().where(tables.c.id == 1).values(plan=older))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0013'"))
    database.close()
    again = Database(store)
    experiments = ExperimentStore(again).load_world().experiments
    plans = [experiment.plan for experiment in experiments]
    assert plans == [replace(plan, policy=replace(POLICY, outputs=(), save=None)), *[plan] * 200]
    assert MilestoneStore(again).find_notify(1) == POLICY.notify
    assert ExperimentStore(again).find_patterns(1) == dict(POLICY.metrics)
    assert SearchStore(again).load_templates(1) == (((("lr", "0.1"),), plan),)
    again.close()


@pytest.mark.parametrize(
    ("jobs", "verdict", "mended"),
    [
        ((("DECIDES", 13, "COMPLETED"),), "train", 13),
        ((("DECIDES", 13, "EXIT_CODE"), ("HELPS", 33, "CASCADE")), "train", 13),
        ((("DECIDES", 13, "COMPLETED"), ("HELPS", 20, "COMPLETED"), ("SERVES", 33, "COMPLETED")), "train", 20),
        ((("DECIDES", 33, "KILLED_BY_USER"),), None, 33),
        ((("DECIDES", 32.5, "COMPLETED"),), "train", 33),
        ((("DECIDES", None, "HOST_LOST"),), "train", 33),
        ((("DECIDES", -587, "COMPLETED"),), "train", 13),
    ],
    ids=["alone", "a cascade", "a service", "a kill", "less than a second", "no end", "a clock that is behind"],
)
def test_ends_of_an_earlier_version_are_mended_where_the_jobs_know_better(
    database: Database,
    store: str,
    jobs: tuple[tuple[str, float | None, str], ...],
    verdict: str | None,
    mended: float,
) -> None:
    """The server noticed the end after 33 seconds. The clock of a host may be ten minutes behind."""
    experiment = submit(ExperimentStore(database))
    start = NOW - timedelta(seconds=600) if (jobs[0][1] or 0) < 0 else NOW

    def show(seconds: float | None) -> str | None:
        return None if seconds is None else (NOW + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")

    with database.write_transaction() as connection:
        drop_later_columns(connection)
        connection.execute(sa.delete(job_table))
        for at, (part, ended, reason) in enumerate(jobs):
            name = "train" if at == 0 else f"worker.{at}"
            record: dict[str, Any] = {"name": name, "part": part, "state": "FINISHED", "reason": reason}
            record |= {"started_at": start.isoformat(), "ended_at": show(ended)}
            values = {"experiment_id": experiment.id, "name": name, "position": at, "record": record}
            connection.execute(job_table.insert().values(**values))
        cause = {"state": "FINISHED", "reason": "COMPLETED", "at": show(33), "job": verdict}
        times = {"placed_at": NOW, "started_at": NOW, "ended_at": NOW + timedelta(seconds=33)}
        connection.execute(tables.update().values(state="FINISHED", verdict=cause, **times))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0014'"))
    database.close()
    again = Database(store)
    with again.read_transaction() as connection:
        row = connection.execute(sa.select(tables.c.ended_at, tables.c.waited, tables.c.waits_since)).one()
    assert tuple(row) == (NOW + timedelta(seconds=mended), 0.0, None)
    again.close()
