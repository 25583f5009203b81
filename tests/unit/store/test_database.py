"""The store: migrations create the tables of the code, outdated decisions are dropped, damage is reported."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import riseml.store
from riseml.base.errors import NotFound, StoreError
from riseml.base.names import JobName
from riseml.base.states import JobDuty, State, Wanted
from riseml.model import Experiment, Image, Job, Owner, copy_name
from riseml.planning.plan import first_jobs
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
from riseml.store.schema import metadata, sets
from riseml.store.searches import SearchStore
from riseml.store.usage import LastUseReader
from tests.support.stores import flatten_plans, go_back
from tests.unit.control.simulation import make_plan

NOW = datetime(2026, 8, 31, 7, 23, 46, tzinfo=UTC)
PLAN = make_plan("master", "worker.1", "ps.1")


def submit(experiments: ExperimentStore, key: str | None = None, count: int = 1, user: str = "paul") -> Experiment:
    plans = tuple((PLAN, first_jobs(PLAN)) for _ in range(count))
    concurrency = 2 if count > 1 else None
    submitted = NewExperiments(
        Owner(user, 1000, 1000), "toaster", "project: toaster", "", plans, key=key, concurrency=concurrency
    )
    details, _ = experiments.add_experiments(submitted, NOW)
    return details[0].experiment


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


def test_a_record_is_loaded_as_it_was_saved(experiments: ExperimentStore) -> None:
    made = submit(experiments)
    after = replace(made, state=State.RUNNING, jobs=tuple(replace(job, started_at=NOW) for job in made.jobs))
    assert experiments.save_decision(made, after, NOW)
    (found,) = experiments.load_world().experiments
    assert found == replace(after, version=made.version + 1)


def test_a_decision_on_an_old_record_is_dropped(experiments: ExperimentStore) -> None:
    made = submit(experiments)
    experiments.request_kill([made.id])
    assert not experiments.save_decision(made, replace(made, state=State.RUNNING), NOW)
    (found,) = experiments.load_world().experiments
    assert found.wanted is Wanted.KILL
    assert found.state is State.CREATED


def test_numbers_count_up_per_user_and_a_set_has_one_number(experiments: ExperimentStore) -> None:
    assert submit(experiments).number == 1
    assert submit(experiments, count=3).number == 2
    assert submit(experiments).number == 3
    assert submit(experiments, user="anna").number == 1
    assert [detail.experiment.sub for detail in experiments.find_by_number("paul", 2)] == [1, 2, 3]


def test_the_same_key_from_a_client_adds_no_second_experiment(experiments: ExperimentStore) -> None:
    assert submit(experiments, key="a").id == submit(experiments, key="a").id
    assert submit(experiments, key="a", user="anna").id != submit(experiments, key="a").id


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


def test_what_a_base_image_stood_for_is_kept_from_an_earlier_version(database: Database, store: str) -> None:
    first, second = submit(ExperimentStore(database)), submit(ExperimentStore(database))
    with database.write_transaction() as connection:
        changed = {"resolved": "base@sha256:1"}
        connection.execute(tables.update().where(tables.c.id == first.id).values(**changed))
        go_back(connection, "0005")
    database.close()
    again = Database(store)
    found = ExperimentStore(again).load_world().experiments
    assert [one.resolved for one in found] == [(("base", "base@sha256:1"),), ()]
    assert [one.reference for one in found[0].images] == ["base@sha256:1"]
    assert set(LastUseReader(again).load_last_uses().environments) == {copy_name("base@sha256:1"), "base"}
    again.close()
    assert second.resolved == ()


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
    assert all(getattr(POLICY, field.name) != getattr(DEFAULT_POLICY, field.name) for field in fields(RunPolicy))
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


def test_environments_of_roles_are_stored_and_in_use(experiments: ExperimentStore, database: Database) -> None:
    plan = replace(PLAN, role_images=(("worker", Image("other", ("pip install b",), (), "cd" * 32)),))
    order = NewExperiments(Owner("paul", 1000, 1000), "toaster", "project: toaster", "", ((plan, first_jobs(plan)),))
    made = experiments.add_experiments(order, NOW)[0][0].experiment
    resolved = (("base", "base@sha256:1"), ("other", "other@sha256:2"))
    assert experiments.save_decision(made, replace(made, resolved=resolved), NOW)
    (found,) = experiments.load_world().experiments
    assert (found.plan, found.resolved) == (plan, resolved)
    used = LastUseReader(database).load_last_uses().environments
    assert set(used) == {copy_name(one.reference) for one in found.images}


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
