"""PyTorch: what each job finds in its environment, as whole values and as laws for every group."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from riseml.base.states import JobDuty
from riseml.model import Experiment
from riseml.spec.config.loader import check_config, load_config
from riseml.spec.config.types import ProcessGroup, PyTorch, Resources, Spec, Train
from tests.unit.frameworks.layouts import gang, make_experiment, on_loopback, script, variables

FILE = """
project: toaster
train:
  framework: pytorch
  pytorch: {distributed: {worker: 3, processes: 2}}
  resources: {cpus: 4, mem: 1GiB}
  run: torchrun train.py
"""


def make_group(workers: int, processes: int | None = None, gpus: int = 0) -> Experiment:
    resources = Resources(cpus=4, mem=1024, gpus=gpus)
    group = ProcessGroup(workers, processes, resources, resources)
    return make_experiment(Spec("t", Train(("c",), framework="pytorch", pytorch=PyTorch(distributed=group))))


def test_a_worker_gets_what_python_and_torchrun_read() -> None:
    experiment = make_experiment(load_config(FILE))
    assert [(job.name, job.part) for job in gang(experiment)] == [
        ("master", JobDuty.DECIDES),
        ("worker.1", JobDuty.HELPS),
        ("worker.2", JobDuty.HELPS),
    ]
    found = variables(experiment, "worker.1")
    assert {name: found[name] for name in sorted(found) if name not in variables(make_plain(), "train")} == {
        "MASTER_ADDR": "master",
        "MASTER_PORT": "2222",
        "NODE_RANK": "1",
        "PET_MASTER_ADDR": "master",
        "PET_MASTER_PORT": "2222",
        "PET_NNODES": "3",
        "PET_NODE_RANK": "1",
        "PET_NPROC_PER_NODE": "2",
        "RANK": "1",
        "WORLD_SIZE": "3",
    }
    assert script(experiment, "worker.1").endswith("\nexport OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}\ntorchrun train.py")
    assert experiment.plan.image.base == "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"


@pytest.mark.parametrize(
    ("own", "size", "path", "dumps"),
    [
        ({}, "2000", "/output/nccl_trace_rank_", "1"),
        ({"TORCH_FR_BUFFER_SIZE": "0", "TORCH_NCCL_DUMP_ON_TIMEOUT": "0"}, "0", "/output/nccl_trace_rank_", "0"),
        ({"TORCH_NCCL_TRACE_BUFFER_SIZE": "9", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "/tmp/r"}, "9", "/tmp/r", "1"),
    ],
)
def test_a_gang_records_its_last_collectives_unless_env_says_otherwise(
    own: dict[str, str], size: str, path: str, dumps: str
) -> None:
    experiment = make_experiment(load_config(FILE.replace("torchrun train.py", "env")))
    command = ["sh", "-ec", script(experiment, "worker.1")]
    printed = subprocess.run(command, env={"OUTPUT_DIR": "/output", **own}, capture_output=True, text=True, check=True)
    recorder = dict(line.split("=", 1) for line in printed.stdout.splitlines() if line.startswith("TORCH_"))
    assert recorder == {
        "TORCH_FR_BUFFER_SIZE": size,
        "TORCH_NCCL_TRACE_BUFFER_SIZE": size,
        "TORCH_FR_DUMP_TEMP_FILE": path,
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": path,
        "TORCH_NCCL_DUMP_ON_TIMEOUT": dumps,
    }
    assert "TORCH_" not in script(make_experiment(Spec("t", Train(("c",), framework="pytorch"))), "train")


def make_plain() -> Experiment:
    return make_experiment(Spec("t", Train(("c",), image="x")))


LAUNCHER = {*("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")}


def test_a_job_that_is_alone_has_no_variable_of_a_launcher() -> None:
    """Scripts such as nanoGPT take RANK as the sign that a launcher has started several processes."""
    alone = make_experiment(Spec("t", Train(("c",), framework="pytorch")))
    found = variables(alone, "train")
    assert found.keys() & LAUNCHER == set()
    assert (found["PET_MASTER_ADDR"], found["PET_MASTER_PORT"]) == ("train", "2222"), "for torchrun: its own port"
    assert variables(make_group(1, 1), "master").keys() & LAUNCHER == set()
    assert variables(make_group(1), "master").keys() & LAUNCHER == LAUNCHER, "a group of one, as in a scaling"
    assert variables(make_group(2, 1), "master").keys() & LAUNCHER == LAUNCHER


def test_env_may_set_what_a_job_alone_does_not_get() -> None:
    file = "project: x\ntrain: {framework: pytorch, run: python t.py, env: {RANK: 0, WORLD_SIZE: 1}SECTION}\n"
    assert check_config(file.replace("SECTION", "")).problems == ()
    told = [str(one) for one in check_config(file.replace("SECTION", ", pytorch: {distributed: {worker: 2}}")).problems]
    assert [" sets RANK;" in one or " sets WORLD_SIZE;" in one for one in told] == [True, True]


@pytest.mark.parametrize(("gpus", "processes", "count"), [(0, None, "1"), (4, None, "4"), (4, 2, "2"), (0, 3, "3")])
def test_torchrun_starts_one_process_for_each_gpu(gpus: int, processes: int | None, count: str) -> None:
    assert variables(make_group(2, processes, gpus), "worker.1")["PET_NPROC_PER_NODE"] == count


@pytest.mark.parametrize(("gpus", "processes", "local"), [(0, None, "0"), (1, None, "0"), (4, 1, "0"), (0, 2, None)])
def test_only_a_job_of_one_process_has_a_local_rank(gpus: int, processes: int | None, local: str | None) -> None:
    found = variables(make_group(2, processes, gpus), "master")
    assert (found.get("LOCAL_RANK"), found.get("LOCAL_WORLD_SIZE")) == (local, local and "1")


def test_a_script_that_gets_several_gpus_may_start_its_processes_itself() -> None:
    """Lightning waits for the processes of others when it finds LOCAL_RANK."""
    train = Train(("c",), framework="pytorch", resources=Resources(cpus=4, mem=1024, gpus=2))
    found = variables(make_experiment(Spec("t", train)), "train")
    assert found.keys() & {"LOCAL_RANK", "LOCAL_WORLD_SIZE"} == set()
    assert found["PET_NPROC_PER_NODE"] == "2"


@given(st.integers(1, 40), st.one_of(st.none(), st.integers(1, 16)), st.integers(0, 8))
def test_all_jobs_agree(workers: int, processes: int | None, gpus: int) -> None:
    assume((workers, processes) != (1, 1))  # one job alone is no group
    experiment = make_group(workers, processes, gpus)
    check_agreement(experiment)
    check_agreement(on_loopback(experiment))


def check_agreement(experiment: Experiment) -> None:
    views = [variables(experiment, job.name) for job in gang(experiment)]
    workers = len(views)
    for rank, view in enumerate(views):
        assert view["RANK"] == view["NODE_RANK"] == view["PET_NODE_RANK"] == view["WORKER_INDEX"] == str(rank)
        assert view["WORLD_SIZE"] == view["PET_NNODES"] == view["TOTAL_WORKERS"] == str(workers)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        assert {view[name] for view in views} == {view[f"PET_{name}"] for view in views}
        assert len({view[name] for view in views}) == 1


def test_roles_have_resources_of_their_own() -> None:
    section = "{worker: {count: 2, resources: {gpus: 2}}, master: {resources: {gpus: 1, mem: 8GiB}}}"
    text = FILE.replace("{worker: 3, processes: 2}", section)
    experiment = make_experiment(load_config(text))
    assert [(job.resources.gpus, job.resources.mem) for job in gang(experiment)] == [(1, 8192), (2, 1024)]
    assert [variables(experiment, job.name)["PET_NPROC_PER_NODE"] for job in gang(experiment)] == ["1", "2"]
