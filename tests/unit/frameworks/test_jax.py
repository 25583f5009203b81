"""JAX: what each job finds in its environment, as whole values and as laws for every group."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from riseml.base.states import JobDuty
from riseml.model import Experiment
from riseml.spec.config.loader import load_config
from riseml.spec.config.types import JAX, ProcessGroup, Resources, Spec, Train
from tests.unit.frameworks.layouts import gang, list_ranks, make_experiment, on_loopback, script, variables

FILE = """
project: toaster
train:
  framework: jax
  jax: {distributed: {worker: 3}}
  resources: {cpus: 4, mem: 1GiB}
  run: python train.py
"""


def ranks(experiment: Experiment, name: str) -> list[dict[str, str]]:
    return list_ranks(script(experiment, name))


def make_group(workers: int, processes: int | None = None, gpus: int = 0) -> Experiment:
    resources = Resources(cpus=4, mem=1024, gpus=gpus)
    group = ProcessGroup(workers, processes, resources, resources)
    return make_experiment(Spec("t", Train(("a", "b"), framework="jax", jax=JAX(distributed=group))))


def test_a_worker_gets_what_jax_reads() -> None:
    experiment = make_experiment(load_config(FILE))
    assert [(job.name, job.part) for job in gang(experiment)] == [
        ("master", JobDuty.DECIDES),
        ("worker.1", JobDuty.HELPS),
        ("worker.2", JobDuty.HELPS),
    ]
    found = variables(experiment, "worker.1")
    plain = make_experiment(Spec("t", Train(("c",), image="x")))
    assert {name: found[name] for name in sorted(found) if name not in variables(plain, "train")} == {
        "JAX_COORDINATOR_ADDRESS": "master:2222",
        "JAX_COORDINATOR_BIND_ADDRESS": "master:2222",
        "JAX_ENABLE_PREEMPTION_SERVICE": "false",
        "JAX_NUM_PROCESSES": "3",
        "JAX_PROCESS_ID": "1",
        "SLURM_JOB_ID": "1",
        "SLURM_LOCALID": "0",
        "SLURM_NTASKS": "3",
        "SLURM_PROCID": "1",
        "SLURM_STEP_NODELIST": "master",
    }
    assert script(experiment, "worker.1").endswith("\npython train.py")


@pytest.mark.parametrize(("gpus", "variant"), [(0, "cpu"), (2, "cuda12")])
def test_riseml_installs_jax_on_a_plain_image(gpus: int, variant: str) -> None:
    image = make_group(2, None, gpus).plan.image
    assert (image.base, image.install) == ("python:3.12-slim", (f'pip install "jax[{variant}]==0.10.2"',))
    own = make_experiment(load_config(FILE.replace("run:", "image: company/jax:1\n  run:")))
    assert (own.plan.image.base, own.plan.image.install) == ("company/jax:1", ())


def test_one_process_uses_all_gpus_and_several_share_them() -> None:
    assert variables(make_group(2, None, 4), "worker.1")["JAX_LOCAL_DEVICE_IDS"] == "0,1,2,3"
    four = make_group(2, 4, 2)
    assert [rank["JAX_LOCAL_DEVICE_IDS"] for rank in ranks(four, "worker.1")] == ["0", "0", "1", "1"]
    assert [rank["JAX_LOCAL_DEVICE_IDS"] for rank in ranks(make_group(1, 2, 4), "master")] == ["0,1", "2,3"]


@settings(max_examples=50)
@given(st.integers(1, 12), st.one_of(st.none(), st.integers(1, 4)), st.integers(0, 8))
def test_all_processes_agree(workers: int, processes: int | None, gpus: int) -> None:
    assume((workers, processes) != (1, 1))  # one job alone is no group
    experiment = make_group(workers, processes, gpus)
    for one in (experiment, on_loopback(experiment)):
        jobs = [job.name for job in gang(one)]
        several = processes is not None and processes > 1
        views = [{**variables(one, name), **rank} for name in jobs for rank in (ranks(one, name) if several else [{}])]
        size = str(workers * (processes or 1))
        for number, view in enumerate(views):
            assert view["JAX_PROCESS_ID"] == view["SLURM_PROCID"] == str(number)
            assert view["JAX_NUM_PROCESSES"] == view["SLURM_NTASKS"] == size == str(len(views))
            assert ("JAX_LOCAL_DEVICE_IDS" in view) == (gpus > 0)
        (address,) = {view["JAX_COORDINATOR_ADDRESS"] for view in views}
        assert {view["SLURM_STEP_NODELIST"] for view in views} == {address.rpartition(":")[0]}
