"""What the processes of PyTorch, JAX and Horovod find in their environment: a golden table, whole values by layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from riseml.model import Experiment
from riseml.planning.launch import bind_job, job_command, job_variables
from riseml.spec.config.loader import load_config
from riseml.spec.config.types import Spec, Train
from tests.unit.frameworks.layouts import gang, list_ranks, make_experiment

LAYOUTS = {
    "pytorch, one job": "framework: pytorch",
    "pytorch, three containers": "framework: pytorch, pytorch: {distributed: {worker: 3}}",
    "pytorch, two processes in each": "framework: pytorch, pytorch: {distributed: {worker: 2, processes: 2}}",
    "pytorch, one process for each GPU": (
        "framework: pytorch, pytorch: {distributed: {worker: 2}}, resources: {gpus: 4}"
    ),
    "jax, one job": "framework: jax",
    "jax, three containers": "framework: jax, jax: {distributed: {worker: 3}}",
    "jax, two processes in each": "framework: jax, jax: {distributed: {worker: 2, processes: 2}}",
    "jax, two processes share four GPUs": (
        "framework: jax, jax: {distributed: {worker: 2, processes: 2}}, resources: {gpus: 4}"
    ),
    "horovod, two containers": "framework: tensorflow, tensorflow: {horovod: {workers: 2}}",
    "horovod, two processes in each": "framework: tensorflow, tensorflow: {horovod: {count: 2, processes: 2}}",
    "horovod, two processes in each, with tensorboard": (
        "framework: tensorflow, tensorflow: {tensorboard: true, horovod: {workers: {count: 2, processes: 2}}}"
    ),
    "horovod for pytorch, one process for each GPU": (
        "framework: pytorch, pytorch: {horovod: {workers: 2}}, resources: {gpus: 2}"
    ),
}
GOLDEN = Path(__file__).parent / "variables.json"


def find_views(experiment: Experiment) -> dict[str, list[str]]:
    """What riseml sets for each process of each job, beside what every job has."""
    plain = make_experiment(Spec("toaster", Train(("c",), image="x")))
    (single,) = gang(plain)
    common = dict(job_variables(bind_job(plain, single))).keys() - {"WORKER_INDEX", "TOTAL_WORKERS"}
    views: dict[str, list[str]] = {}
    for job in gang(experiment):
        bound = bind_job(experiment, job)
        own = {name: value for name, value in job_variables(bound) if name not in common}
        script = job_command(bound)[-1]
        for rank in list_ranks(script) if "exec python3 -IS -c" in script else [{}]:
            view = own | rank
            views.setdefault(job.name, []).append(" ".join(f"{name}={view[name]}" for name in sorted(view)))
    return views


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_process_gets_its_values(layout: str) -> None:
    experiment = make_experiment(load_config(f"project: toaster\ntrain: {{{LAYOUTS[layout]}, run: python t.py}}\n"))
    assert find_views(experiment) == json.loads(GOLDEN.read_text())[layout]


def test_the_golden_table_has_these_layouts_alone() -> None:
    assert list(json.loads(GOLDEN.read_text())) == list(LAYOUTS)
