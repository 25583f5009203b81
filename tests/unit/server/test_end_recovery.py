"""The end of an experiment that the store has lost, from the capsule in its output; tests/unit/store/test_journal.py
has those of the journal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from riseml.base.states import Reason, State
from riseml.model import Experiment
from riseml.planning.launch import output_folder
from riseml.server.end_recovery import recover_ends
from riseml.server.services import Stores
from riseml.store.journal import ExperimentJournal
from riseml.wire.capsules import CAPSULE_FILE, CAPSULE_FOLDER
from tests.unit.control.simulation import make_plan
from tests.unit.server.stored_experiments import NOW, add_experiment, open_application

CREATED = NOW.isoformat()
ENDED = "2026-08-31T08:00:00+00:00"
CAPSULE: dict[str, Any] = {
    "state": "FAILED",
    "reason": "EXIT_CODE",
    "message": "exit code 3",
    "times": {"created_at": CREATED, "placed_at": CREATED, "started_at": CREATED, "ended_at": ENDED},
    "jobs": [
        {"name": "train", "state": "FAILED", "attempt": 2, "exit_code": 3, "started_at": CREATED, "ended_at": ENDED}
    ],
}


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """Experiment 1 is open, as far as the store knows."""
    with open_application(tmp_path) as application:
        add_experiment(application.services.stores, make_plan("train"))
        yield application.services.stores


def recover(stores: Stores, folder: Path, content: str) -> Experiment:
    """Return the experiment after its capsule was read, which has a content."""
    before = stores.experiments.get_experiment(1).experiment
    capsule = folder / output_folder(before) / CAPSULE_FOLDER / CAPSULE_FILE
    capsule.parent.mkdir(parents=True)
    capsule.write_text(content)
    recover_ends(stores.experiments, ExperimentJournal(folder / "journal"), lambda _: None, folder)
    return stores.experiments.get_experiment(1).experiment


def test_an_experiment_that_its_capsule_says_has_ended_does_not_run_again(stores: Stores, tmp_path: Path) -> None:
    ended = recover(stores, tmp_path / "outputs", json.dumps(CAPSULE))
    assert (ended.state, ended.reason, ended.message) == (State.FAILED, Reason.EXIT_CODE, "exit code 3")
    assert ended.ended_at is not None
    assert ended.ended_at.isoformat() == ENDED
    jobs = {job.name: (job.state, job.exit_code, job.attempt) for job in ended.jobs}
    assert jobs == {"build": (State.FINISHED, None, 1), "train": (State.FAILED, 3, 2)}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[" * 100_000,
        "[]",
        json.dumps({"state": "FAILED"}),
        json.dumps(CAPSULE | {"state": "RUNNING"}),
        json.dumps(CAPSULE | {"state": "x"}),
        json.dumps(CAPSULE | {"jobs": 7}),
        json.dumps(CAPSULE | {"times": CAPSULE["times"] | {"created_at": "2025-01-01T00:00:00+00:00"}}),
        json.dumps(CAPSULE | {"times": CAPSULE["times"] | {"ended_at": None}}),
    ],
    ids=["empty", "deep", "a list", "a part", "runs", "no state", "no jobs", "of another experiment", "no end"],
)
def test_what_is_no_capsule_of_an_end_changes_nothing(stores: Stores, tmp_path: Path, content: str) -> None:
    assert recover(stores, tmp_path / "outputs", content).state is State.CREATED
