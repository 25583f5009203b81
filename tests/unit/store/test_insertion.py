"""New experiments: their numbers, and keys that are used again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from tests.unit.store.submissions import submit


def test_numbers_count_up_per_user_and_a_set_has_one_number(experiments: ExperimentStore) -> None:
    assert submit(experiments).number == 1
    assert submit(experiments, count=3).number == 2
    assert submit(experiments).number == 3
    assert submit(experiments, user="anna").number == 1
    assert [detail.experiment.sub for detail in experiments.find_by_number("paul", 2)] == [1, 2, 3]


def test_the_same_key_from_a_client_adds_no_second_experiment(experiments: ExperimentStore) -> None:
    assert submit(experiments, key="a").id == submit(experiments, key="a").id
    assert submit(experiments, key="a", user="anna").id != submit(experiments, key="a").id


def test_submissions_at_the_same_time_get_different_numbers(store: str) -> None:
    databases = [Database(store) for _ in range(4)]
    with ThreadPoolExecutor(8) as hands:
        made = list(hands.map(lambda turn: submit(ExperimentStore(databases[turn % 4])).number, range(24)))
    assert sorted(made) == list(range(1, 25))
    for database in databases:
        database.close()
