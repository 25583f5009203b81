"""The journal says what the store has given and ended, also when the store has lost it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from riseml.base.states import Reason, State
from riseml.server.end_recovery import recover_ends
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.journal import ExperimentJournal, LastNumbers
from riseml.store.schema import events, experiments, jobs
from tests.unit.store.submissions import NOW, submit


@pytest.fixture
def journal(tmp_path: Path) -> ExperimentJournal:
    return ExperimentJournal(tmp_path / "experiments.journal")


@pytest.fixture
def noted(database: Database, journal: ExperimentJournal) -> ExperimentStore:
    return ExperimentStore(database, journal)


def end(store: ExperimentStore, number: int, state: State = State.FINISHED) -> None:
    """Save the end of an experiment of paul."""
    before = store.find_by_number("paul", number)[0].experiment
    after = replace(
        before,
        state=state,
        reason=Reason.COMPLETED,
        message="",
        started_at=NOW,
        ended_at=NOW + timedelta(seconds=3),
        jobs=tuple(replace(job, state=state, exit_code=0, ended_at=NOW) for job in before.jobs),
    )
    assert store.save_decision(before, after, NOW + timedelta(seconds=9))


def test_the_journal_has_what_was_accepted_and_how_it_ended(noted: ExperimentStore, journal: ExperimentJournal) -> None:
    assert journal.find_last() == LastNumbers(0, {})
    first, other = submit(noted), submit(noted, count=3)
    submit(noted, user="anna of x")
    end(noted, 1)
    assert journal.find_last() == LastNumbers(5, {"paul": 2, "anna of x": 1})
    found = journal.find_ends([first, other])
    assert {key: (one.state, one.ended_at, len(one.jobs)) for key, one in found.items()} == {
        1: (State.FINISHED, NOW + timedelta(seconds=3), len(first.jobs))
    }
    assert journal.find_ends([replace(first, created_at=NOW + timedelta(seconds=1))]) == {}, "another one with its id"


@pytest.mark.parametrize(
    "rest", [b"", b"E", b"E 1 ", b"A 99 99 2026-", b"A 99 99 x\xff", b'E 1 x {"state": 7}\n', b"\n\0\n"]
)
def test_lines_that_cannot_be_read_are_skipped(
    noted: ExperimentStore, journal: ExperimentJournal, tmp_path: Path, rest: bytes
) -> None:
    first = submit(noted)
    end(noted, 1)
    path = tmp_path / "experiments.journal"
    path.write_bytes(path.read_bytes() + rest)
    assert journal.find_last() == LastNumbers(1, {"paul": 1})
    assert set(journal.find_ends([first])) == {1}


def test_a_store_that_lost_an_end_gets_it_again_and_gives_no_number_twice(
    database: Database, noted: ExperimentStore, journal: ExperimentJournal, caplog: pytest.LogCaptureFixture
) -> None:
    first = submit(noted)
    still_open = submit(noted)
    end(noted, 1)
    ended = noted.find_by_number("paul", 1)[0].experiment
    submit(noted, user="anna")
    submit(noted, count=2)
    with database.write_transaction() as connection:  # what a lost write-ahead log does
        for table, column in ((events, "experiment_id"), (jobs, "experiment_id"), (experiments, "id")):
            connection.execute(table.delete().where(table.c[column] > still_open.id))
        columns = {"state": "CREATED", "reason": "SUBMITTED", "started_at": None, "ended_at": None}
        connection.execute(experiments.update().where(experiments.c.id == first.id).values(**columns))
        connection.execute(sa.text("DELETE FROM sets"))
    store = ExperimentStore(database, journal)
    for _ in range(2):  # a server that starts later finds nothing new
        recover_ends(store, journal, lambda _: None, None)
    found = store.find_by_number("paul", 1)[0].experiment
    assert (found.state, found.reason, found.started_at, found.ended_at) == (
        ended.state,
        ended.reason,
        ended.started_at,
        ended.ended_at,
    )
    assert found.jobs == ended.jobs
    assert store.find_by_number("paul", 2)[0].experiment.state is State.CREATED, "the other one goes on"
    (fresh, anna) = submit(store), submit(store, user="anna")
    assert (fresh.number, anna.number) == (4, 2)
    assert min(fresh.id, anna.id) == 6
    assert [record.getMessage()[:47] for record in caplog.records] == [
        "the store has lost the experiments with the ids",
        "experiment 1 of paul had ended as FINISHED, whi",
    ]
