"""What the jobs of an experiment run, and where its TensorBoard listens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from riseml.base.names import HostName, parse_id
from riseml.base.states import CompanionKind, JobDuty, State
from riseml.model import Companion, Experiment
from riseml.server.api.views.run_views import find_tensorboard, show_run
from tests.unit.control.simulation import make_experiment, make_plan

HERE, THERE = HostName("here"), HostName("there")


def make_running(*names: str, **changes: Any) -> Experiment:
    """Return an experiment whose jobs run on this machine; `changes` are those of its TensorBoard."""
    experiment = make_experiment(9, make_plan(*names), number=4)
    placed: dict[str, Any] = {"state": State.RUNNING, "host": HERE, "address": "10.213.0.5"}
    jobs = (replace(job, **placed | (changes if job.name == "tensorboard" else {})) for job in experiment.jobs)
    return replace(experiment, jobs=tuple(jobs))


def test_lines_are_shown_once_for_the_jobs_that_run_them() -> None:
    plan = make_plan("master", "worker.1", "tensorboard")
    jobs = [replace(job, run=("python t.py --lr {{lr}} {{data_dir}}",)) for job in plan.jobs]
    jobs[-1] = replace(jobs[-1], run=("exec tensorboard",), part=JobDuty.WATCHES)
    plan = replace(plan, jobs=tuple(jobs), parameters=(("lr", "a b"),))
    experiment = make_experiment(9, plan, number=4)
    lines = ["python t.py --lr 'a b' {{data_dir}}"]
    assert show_run(experiment, None) == [{"jobs": ["master", "worker.1"], "lines": lines}]
    assert show_run(experiment, parse_id("4.worker")) == [{"jobs": ["worker.1"], "lines": lines}]
    companion = replace(plan, companion=Companion(CompanionKind.NOTEBOOK, 60.0))
    assert show_run(make_experiment(9, companion, number=4), None) == []


@pytest.mark.parametrize(
    ("changes", "address"),
    [
        ({}, "http://10.213.0.5:6006"),
        ({"address": "127.0.0.1", "port": 40001}, "http://127.0.0.1:40001"),
        ({"state": State.STARTING}, None),
        ({"address": None}, None),
        ({"host": THERE}, None),
    ],
)
def test_tensorboard_has_an_address_where_this_machine_reaches_it(changes: dict[str, Any], address: str | None) -> None:
    experiment = make_running("master", "tensorboard", **changes)
    assert find_tensorboard(experiment, lambda host: host == HERE) == address


def test_a_gang_across_hosts_and_one_elsewhere_have_no_address() -> None:
    experiment = make_running("master", "tensorboard")
    assert find_tensorboard(experiment, lambda host: False) is None
    across = replace(experiment, jobs=(replace(experiment.jobs[0], host=THERE), *experiment.jobs[1:]))
    assert find_tensorboard(across, lambda host: True) == find_tensorboard(experiment, lambda host: True)
    gang = tuple(replace(job, host=THERE) if job.name == "master" else job for job in experiment.jobs)
    assert find_tensorboard(replace(experiment, jobs=gang), lambda host: True) is None
