"""The one job, or the experiment that runs, that an ID names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from riseml.base.errors import Conflict, NotFound, RisemlError, UsageError
from riseml.base.states import State
from riseml.server.api.job_connectors import find_connector, find_running
from riseml.server.services import Services
from tests.support.callers import ME
from tests.unit.control.simulation import make_plan
from tests.unit.server.stored_experiments import add_experiment, open_application


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """Experiment 1 has two jobs and has not begun, 2 has ended."""
    with open_application(tmp_path) as application:
        add_experiment(application.services.stores, make_plan("master", "worker.1"))
        add_experiment(application.services.stores, make_plan("train"), State.FINISHED)
        yield application.services


@pytest.mark.parametrize(
    ("name", "error", "message", "hint"),
    [
        ("1", UsageError, "1 has several jobs", "name one: 1.master, 1.worker.1"),
        ("1.build", UsageError, "1.build builds the environment and cannot be entered", "name another job"),
        ("1.ps", NotFound, "experiment 1 has no job ps", "its jobs are build, master, worker.1"),
        ("1.master", Conflict, "1.master has not begun, it is CREATED", "`riseml explain 1` says what it waits for"),
        ("2", Conflict, "2.train has ended (FINISHED)", "`riseml logs 2.train` shows what it printed"),
        ("3", NotFound, "there is no experiment 3", None),
    ],
)
def test_what_is_not_one_running_job_says_what_to_name(
    services: Services, name: str, error: type[RisemlError], message: str, hint: str | None
) -> None:
    with pytest.raises(error) as refused:
        find_connector(name, ME, services)
    assert refused.value.message == message
    assert hint is None or refused.value.hint == hint


def test_an_experiment_that_has_ended_does_not_run(services: Services) -> None:
    assert find_running("1", ME, services.stores) == 1
    with pytest.raises(Conflict, match="2 has ended"):
        find_running("2", ME, services.stores)
