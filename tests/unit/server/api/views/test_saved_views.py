"""How far the output of an experiment is saved, as the API shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.states import State
from riseml.model import Experiment
from riseml.planning.launch import output_folder
from riseml.server.api.views.saved_views import show_saved, show_saved_summary
from riseml.server.data.output_saver import OutputSaver
from riseml.spec.config.types import SaveSection
from tests.unit.control.simulation import START, change_policy, make_experiment, make_plan
from tests.unit.server.stored_experiments import open_application


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[OutputSaver]:
    with open_application(tmp_path) as application:
        yield application.services.data.saver


@pytest.fixture
def experiment() -> Experiment:
    """An experiment whose output goes to a bucket."""
    plan = change_policy(make_plan("train"), save=SaveSection("s3://bucket/runs"))
    return make_experiment(1, plan, number=4)


@pytest.mark.parametrize(
    ("state", "began", "closed", "saved"),
    [
        (State.RUNNING, True, False, "waiting"),
        (State.KILLED, False, True, "nothing"),
        (State.FINISHED, True, False, "saving"),
        (State.FINISHED, True, True, "incomplete"),
    ],
)
def test_an_output_without_a_copy(
    saver: OutputSaver, experiment: Experiment, state: State, *, began: bool, closed: bool, saved: str
) -> None:
    ended = replace(experiment, state=state, started_at=START if began else None, closed=closed)
    summary = show_saved_summary(ended, saver)
    assert summary is not None
    assert (summary["state"], summary["files"], summary["saved_at"]) == (saved, 0, None)
    assert summary["place"] == f"s3://bucket/runs/{output_folder(experiment)}"
    assert show_saved(ended, "1", saver, summary)["manifest"] == []


def test_a_file_without_the_section_saves_nothing(saver: OutputSaver) -> None:
    assert show_saved_summary(make_experiment(1, make_plan("train")), saver) is None
