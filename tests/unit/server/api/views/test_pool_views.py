"""The pool as the API shows it: which jobs hold a place on a host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.states import State
from riseml.server.api.views.pool_views import list_jobs_on
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.server.memory_pool import H1, H2


@pytest.mark.parametrize(
    ("state", "jobs"),
    [
        (State.STARTING, ["4.master", "4.ps.1"]),
        (State.RUNNING, ["4.master", "4.ps.1"]),
        (State.PENDING, []),
        (State.FINISHED, []),
    ],
)
def test_jobs_that_start_or_run_hold_their_place(state: State, jobs: list[str]) -> None:
    experiment = make_experiment(9, make_plan("master", "ps.1", "worker.1"), number=4)
    hosts = {"master": H1, "ps.1": H1, "worker.1": H2}
    placed = replace(experiment, jobs=tuple(replace(job, host=hosts[job.name], state=state) for job in experiment.gang))
    assert list_jobs_on((placed,), H1) == jobs
    assert list_jobs_on((experiment,), H1) == []
