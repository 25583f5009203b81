"""A log that was lost says so in one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.states import State
from riseml.model import Experiment
from riseml.server.api.merged_log.log_check import prepare_log
from riseml.store.logs.log_store import LogStore, read_all_lines
from tests.unit.control.simulation import START, make_experiment, make_plan


def make_ended(*, ran: bool) -> Experiment:
    """Return an experiment that has ended; its job ran, or never did."""
    experiment = make_experiment(1, make_plan("train"), state=State.FINISHED, closed=True)
    started = START if ran else None
    return replace(experiment, jobs=tuple(replace(job, started_at=started) for job in experiment.jobs))


@pytest.mark.parametrize(("ran", "closed", "lines"), [(True, True, 1), (False, True, 0), (True, False, 0)])
def test_a_missing_log_gets_a_line_once_its_experiment_has_ended(
    tmp_path: Path, *, ran: bool, closed: bool, lines: int
) -> None:
    logs = LogStore(tmp_path)
    experiment = replace(make_ended(ran=ran), closed=closed)
    prepare_log(experiment, logs)
    prepare_log(experiment, logs)
    texts = [line.text for line in read_all_lines(logs, 1)]
    assert len(texts) == lines
    assert all(b"the log was lost, or never arrived" in text for text in texts)
