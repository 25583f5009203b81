"""Numbers that a store has lost are given to no other experiment, in both kinds of store."""

from __future__ import annotations

from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.journal import LastNumbers
from riseml.store.lost_numbers import find_last_number, skip_numbers
from tests.unit.store.submissions import submit


def skip(database: Database, last: LastNumbers) -> LastNumbers | None:
    with database.write_transaction() as connection:
        return skip_numbers(connection, last)


def test_new_experiments_get_numbers_and_keys_above_the_lost_ones(
    database: Database, experiments: ExperimentStore
) -> None:
    submit(experiments)
    assert skip(database, LastNumbers(7, {"paul": 5, "anna": 2})) == LastNumbers(1, {"paul": 1})
    first, second, other = submit(experiments), submit(experiments), submit(experiments, user="anna")
    assert [(first.number, first.id), (second.number, second.id), (other.number, other.id)] == [(6, 8), (7, 9), (3, 10)]
    assert submit(experiments, user="bob").number == 1


def test_a_store_that_has_lost_nothing_is_left_alone(database: Database, experiments: ExperimentStore) -> None:
    assert skip(database, LastNumbers(0, {})) is None
    made = submit(experiments)
    assert skip(database, LastNumbers(made.id, {"paul": 1})) is None


def test_what_was_lost_before_stays_lost(database: Database) -> None:
    skip(database, LastNumbers(7, {"paul": 5}))
    assert skip(database, LastNumbers(7, {"paul": 5})) is None, "it is stored already"
    skip(database, LastNumbers(3, {"anna": 2}))
    with database.read_transaction() as connection:
        numbers = {user: find_last_number(connection, user) for user in ("paul", "anna", "bob")}
    assert numbers == {"paul": 5, "anna": 2, "bob": 0}
