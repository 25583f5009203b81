"""Experiments as rows of the tables, and back: nothing changes on the way, and secrets go when they are not needed."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from riseml.base.names import HostName
from riseml.base.states import Network, Reason, State, Wanted
from riseml.model import Experiment
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.rows import experiment_values, read_resolved, select_texts, to_experiment, write_resolved
from riseml.store.schema import experiments as table
from riseml.store.schema import jobs, sets
from tests.unit.store.submissions import NOW, submit


def read_row(database: Database, identity: int) -> Experiment:
    """Return an experiment as its rows say it."""
    with database.read_transaction() as connection:
        columns = (*select_texts(table), sets.c.concurrency, sets.c.paused)
        joined = sa.select(*columns).outerjoin(sets, table.c.set_id == sets.c.id)
        row = connection.execute(joined.where(table.c.id == identity)).mappings().one()
        record = sa.cast(jobs.c.record, sa.Text)
        query = sa.select(record).where(jobs.c.experiment_id == identity).order_by(jobs.c.position)
        return to_experiment(row, connection.execute(query).scalars())


def test_a_decision_is_read_as_it_was_written(database: Database, experiments: ExperimentStore) -> None:
    made = submit(experiments)
    assert read_row(database, made.id) == made
    changed = replace(
        made,
        state=State.RUNNING,
        reason=Reason.RUNNING,
        message="größe\n損失",
        network=Network.HOST,
        network_host=HostName("gpu1"),
        placed_at=NOW,
        started_at=NOW,
    )
    with database.write_transaction() as connection:
        connection.execute(table.update().where(table.c.id == made.id).values(**experiment_values(changed)))
    assert read_row(database, made.id) == changed


def test_variables_are_erased_once_no_job_starts_any_more(experiments: ExperimentStore) -> None:
    made = replace(submit(experiments), environment=(("TOKEN", "secret"),))
    assert "environment" not in experiment_values(made)
    ended = replace(made, wanted=Wanted.KILL, state=State.KILLED, closed=True, ended_at=NOW)
    assert experiment_values(ended)["environment"] == []


def test_no_base_image_is_an_empty_column() -> None:
    resolved = (("python:3.11", "sha256:" + "a" * 64),)
    assert read_resolved(write_resolved(resolved)) == resolved
    assert (write_resolved(()), read_resolved("")) == ("", ())
