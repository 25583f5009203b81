"""What PyTorch and JAX share: the jobs of a process group, its placeholders, and the threads of each process."""

from __future__ import annotations

import subprocess

import pytest

from riseml.base.names import JobName
from riseml.base.states import JobDuty
from riseml.frameworks.base import WORKER_GRACE
from riseml.frameworks.process_group import (
    count_written_processes,
    find_job,
    is_alone,
    limit_threads,
    list_group_roles,
    make_placeholders,
)
from riseml.model import Plan
from riseml.spec.config.loader import load_config
from riseml.spec.config.types import ProcessGroup, Resources, Train
from tests.unit.frameworks.layouts import make_experiment

SMALL, LARGE = Resources(cpus=1), Resources(cpus=8)
ADDRESSES = {JobName("master"): "h1:2222", JobName("worker.1"): "h2:2222"}


def make_plan(section: str, cpus: int = 4) -> Plan:
    resources = f"resources: {{cpus: {cpus}, mem: 1GiB}}"
    text = f"project: x\ntrain: {{framework: pytorch{section}, run: c, {resources}}}\n"
    return make_experiment(load_config(text)).plan


@pytest.mark.parametrize(("finish_grace", "grace"), [(None, WORKER_GRACE), (0.0, 0.0), (90.0, 90.0)])
def test_the_master_decides_and_workers_help(finish_grace: float | None, grace: float) -> None:
    group = ProcessGroup(3, None, master_resources=LARGE, worker_resources=SMALL)
    roles = list_group_roles(Train(("c",), finish_grace=finish_grace), group)
    assert [(role.name, role.part, role.resources, role.grace) for role in roles] == [
        ("master", JobDuty.DECIDES, LARGE, 0.0),
        ("worker.1", JobDuty.HELPS, SMALL, grace),
        ("worker.2", JobDuty.HELPS, SMALL, grace),
    ]


def test_without_a_group_there_is_one_job() -> None:
    (role,) = list_group_roles(Train(("c",), resources=LARGE), None)
    assert (role.name, role.part, role.resources) == ("train", JobDuty.DECIDES, LARGE)


@pytest.mark.parametrize(
    ("section", "processes", "alone"),
    [
        ("", None, True),
        (", pytorch: {distributed: {worker: 1}}", None, False),
        (", pytorch: {distributed: {worker: 1, processes: 1}}", 1, True),
        (", pytorch: {distributed: {worker: 1, processes: 2}}", 2, False),
        (", pytorch: {distributed: {worker: 2, processes: 1}}", 1, False),
    ],
)
def test_one_process_in_one_job_is_no_group(section: str, processes: int | None, *, alone: bool) -> None:
    plan = make_plan(section)
    assert (count_written_processes(plan), is_alone(plan)) == (processes, alone)


def test_a_job_is_found_with_its_index() -> None:
    index, planned = find_job(make_plan(", pytorch: {distributed: {worker: 3}}"), JobName("worker.2"))
    assert (index, planned.name) == (2, "worker.2")


@pytest.mark.parametrize(
    ("job", "kind", "index", "task"),
    [("master", "worker", "0", "0"), ("worker.1", "worker", "1", "1"), ("tensorboard", "tensorboard", "", "0")],
)
def test_all_jobs_that_train_are_workers(job: str, kind: str, index: str, task: str) -> None:
    assert make_placeholders([*ADDRESSES], JobName(job), ADDRESSES) == {
        "job_name": kind,
        "task_index": task,
        "worker_hosts": "h1:2222,h2:2222",
        "ps_hosts": "",
        "worker_index": index,
        "num_workers": "2",
    }


@pytest.mark.parametrize(
    ("cpus", "processes", "own", "threads"), [(4, 1, None, "4"), (4, 3, None, "1"), (1, 2, None, "1"), (4, 1, "2", "2")]
)
def test_each_process_has_the_threads_of_its_cores_unless_the_user_says_more(
    cpus: int, processes: int, own: str | None, threads: str
) -> None:
    (planned,) = make_plan("", cpus).jobs
    script = limit_threads(planned, processes, "echo $OMP_NUM_THREADS")
    variables = {} if own is None else {"OMP_NUM_THREADS": own}
    done = subprocess.run(["/bin/sh", "-ec", script], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == threads
