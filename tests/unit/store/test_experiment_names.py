"""The names that a shell completes: of one user, the newest ones, and quick in a set of many members."""

from __future__ import annotations

from dataclasses import replace

from riseml.base.states import State
from riseml.store.database import Database
from riseml.store.experiment_names import ExperimentNames
from riseml.store.experiments import ExperimentStore
from tests.unit.store.submissions import NOW, submit

JOBS = ["build", "master", "worker.1", "ps.1"]


def test_numbers_are_the_newest_ones_with_a_prefix(database: Database, experiments: ExperimentStore) -> None:
    for _ in range(12):
        submit(experiments)
    submit(experiments, user="anne")
    names = ExperimentNames(database)
    assert names.list_numbers("paul", "", running=False, most=3) == [10, 11, 12]
    assert names.list_numbers("paul", "1", running=False, most=9) == [1, 10, 11, 12]
    assert names.list_numbers("anne", "", running=False, most=9) == [1]
    assert names.list_numbers("paul", "1%", running=False, most=9) == []


def test_names_of_a_set_are_its_members_and_their_jobs(database: Database, experiments: ExperimentStore) -> None:
    first = submit(experiments, count=2)
    names = ExperimentNames(database)
    expected = [["1.1", *(f"1.1.{job}" for job in JOBS)], ["1.2", *(f"1.2.{job}" for job in JOBS)]]
    assert list(names.list_names("paul", 1, running=False)) == [*expected[0], *expected[1]]
    assert experiments.save_decision(first, replace(first, state=State.FINISHED), NOW)
    assert list(names.list_names("paul", 1, running=True)) == expected[1]
    assert names.list_numbers("paul", "", running=True, most=9) == [1], "one member runs"
    assert list(names.list_names("paul", 2, running=False)) == []


def test_names_of_an_experiment_are_its_jobs(database: Database, experiments: ExperimentStore) -> None:
    submit(experiments)
    assert list(ExperimentNames(database).list_names("paul", 1, running=False)) == [f"1.{job}" for job in JOBS]
