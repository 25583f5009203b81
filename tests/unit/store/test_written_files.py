"""What jobs wrote outside of OUTPUT_DIR, by attempt, in both kinds of store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.names import JobName
from riseml.model import JobKey
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.written_files import WrittenRecord, WrittenStore
from tests.unit.store.submissions import submit

LOST = WrittenRecord(lost_files=2, lost_bytes=70, lost_names=("model.pt", "runs/..."), advice="outputs: [runs]")
KEPT = WrittenRecord(kept_files=1, kept_bytes=7, kept_names=("größe",), more=True)


@pytest.mark.parametrize(
    ("record", "empty"),
    [
        (WrittenRecord(), True),
        (WrittenRecord(more=True), True),
        (KEPT, False),
        (LOST, False),
        (WrittenRecord(trouble="the disk is full"), False),
    ],
    ids=["nothing", "not counted", "kept", "lost", "trouble"],
)
def test_an_empty_record_says_nothing(record: WrittenRecord, *, empty: bool) -> None:
    assert record.is_empty is empty


def test_a_record_replaces_the_one_of_its_attempt(database: Database, experiments: ExperimentStore) -> None:
    key = JobKey(submit(experiments).id, JobName("master"), 1)
    store = WrittenStore(database)
    assert store.load_record(key) is None
    store.save_record(key, LOST)
    store.save_record(key, KEPT)
    assert store.load_record(key) == KEPT
    assert store.load_record(replace(key, attempt=2)) is None


def test_the_last_attempt_of_each_job_counts(database: Database, experiments: ExperimentStore) -> None:
    first, other = submit(experiments), submit(experiments)
    store = WrittenStore(database)
    for attempt, record in ((2, KEPT), (1, LOST)):
        store.save_record(JobKey(first.id, JobName("master"), attempt), record)
    store.save_record(JobKey(first.id, JobName("worker.1"), 1), LOST)
    last = store.load_last([first.id, other.id])
    assert set(last) == {first.id}
    assert sorted(record.lost_files for record in last[first.id]) == [0, 2]
