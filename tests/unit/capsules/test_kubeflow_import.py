"""A riseml.yml from a job of Kubeflow."""

from __future__ import annotations

import json
import subprocess

import pytest
import yaml

from riseml.base.errors import UsageError
from riseml.capsules.kubeflow_files import PYTORCHJOB, TFJOB, KubeflowKind, write_kubeflow
from riseml.capsules.manifest_import import import_manifest
from riseml.frameworks.registry import find_framework
from riseml.planning.image import Manifest
from riseml.planning.launch import is_reserved
from riseml.planning.plan import make_plan
from riseml.spec.config.loader import load_config
from tests.unit.capsules.exported_runs import small_run

CONTAINER = {
    "image": "mnist:1",
    "command": ["python", "train.py", "--lr", "0.1"],
    "env": [{"name": "MODE", "value": "fast"}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s"}}}],
    "resources": {"limits": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 1}},
    "volumeMounts": [],
}
VOLUMES = "jobs have OUTPUT_DIR, and DATA_DIR to read"


def write(kind: str, specs: str, roles: dict[str, int], **changes: object) -> str:
    pod = {"spec": {"containers": [{**CONTAINER, **changes}]}}
    replicas = {role: {"replicas": count, "template": pod} for role, count in roles.items()}
    return json.dumps({"kind": kind, "metadata": {"name": "mnist"}, "spec": {specs: replicas}})


@pytest.mark.parametrize(
    ("kind", "specs", "roles", "jobs"),
    [
        ("TFJob", "tfReplicaSpecs", {"PS": 1, "Worker": 2}, "worker.1 worker.2 ps.1"),
        ("TFJob", "tfReplicaSpecs", {"Chief": 1, "Worker": 1, "Evaluator": 1}, "master worker.1 evaluator"),
        ("TFJob", "tfReplicaSpecs", {"Worker": 1}, "train"),
        ("PyTorchJob", "pytorchReplicaSpecs", {"Master": 1, "Worker": 2}, "master worker.1 worker.2"),
        ("PyTorchJob", "pytorchReplicaSpecs", {"Master": 1}, "master"),
        ("PyTorchJob", "pytorchReplicaSpecs", {"Worker": 1}, "train"),
        ("JAXJob", "jaxReplicaSpecs", {"Worker": 1}, "master"),
    ],
)
def test_replicas_become_jobs(kind: str, specs: str, roles: dict[str, int], jobs: str) -> None:
    found = import_manifest(write(kind, specs, roles), "job.yaml")
    spec = load_config(found.text)
    assert [job.name for job in make_plan(spec, (), Manifest()).jobs] == jobs.split()
    assert spec.train.run[0].endswith("python train.py --lr 0.1")
    assert [(one.name, one.value) for one in spec.train.env] == [("MODE", "fast"), ("TOKEN", None)]
    assert (spec.train.resources.cpus, spec.train.resources.mem, spec.train.resources.gpus) == (0.5, 1024, 1)
    assert [left for left in found.left_out if not left.endswith(".volumeMounts: " + VOLUMES)] == []


@pytest.mark.parametrize(
    ("kind", "specs", "role", "expected"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs", "Master", "0 1 master 2222 0"),
        ("PyTorchJob", "pytorchReplicaSpecs", "Worker", "none none none none $(RANK)"),
        ("JAXJob", "jaxReplicaSpecs", "Worker", "0 1 master 2222 0"),
    ],
)
def test_a_single_pod_has_the_variables_that_the_operator_gives_it(
    kind: str, specs: str, role: str, expected: str
) -> None:
    names = ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"]
    if kind == "JAXJob":
        names = ["PROCESS_ID", "NUM_PROCESSES", "COORDINATOR_ADDRESS", "COORDINATOR_PORT"]
    script = " ".join(["echo", *(f"${{{name}-none}}" for name in names), "$0"])
    text = write(kind, specs, {role: 1}, command=["sh", "-c", script, f"$({names[0]})"])
    spec = load_config(import_manifest(text, "job.yaml").text)
    plan = make_plan(spec, (), Manifest())
    (job,) = plan.jobs
    assert spec.train.framework is not None
    bound = find_framework(spec.train.framework).bind(plan, job.name, {job.name: "master:2222"})
    answer = subprocess.run(
        ["sh", "-ec", spec.train.run[0]], env=dict(bound.variables), check=True, capture_output=True, text=True
    )
    assert answer.stdout.split() == expected.split()


def test_a_manifest_that_generates_its_name_names_the_project() -> None:
    text = write("TFJob", "tfReplicaSpecs", {"Worker": 1}).replace('"name": "mnist"', '"generateName": "mnist-"')
    found = import_manifest(text, "job.yaml")
    assert (found.project, [left for left in found.left_out if "generateName" in left]) == ("mnist", [])


def test_the_script_of_a_shell_and_its_folder_are_kept() -> None:
    text = write("PyTorchJob", "pytorchReplicaSpecs", {"Master": 1}, command=["sh", "-c", "a; b"], workingDir="/opt/x")
    assert load_config(import_manifest(text, "job.yaml").text).train.run == ("cd /opt/x\na; b",)


@pytest.mark.parametrize(
    ("memory", "mib"),
    [("2Ti", 2 << 20), ("1T", 953_674), ("512000k", 488), ("536870912", 512), ("1e9", 954), ("1.5Gi", 1536)],
)
def test_each_unit_of_memory_becomes_mib(memory: str, mib: int) -> None:
    text = write("TFJob", "tfReplicaSpecs", {"Worker": 1}, resources={"requests": {"memory": memory}})
    assert load_config(import_manifest(text, "job.yaml").text).train.resources.mem == mib


@pytest.mark.parametrize(("kind", "framework"), [(TFJOB, "tensorflow"), (PYTORCHJOB, "pytorch")])
def test_what_riseml_has_exported_can_be_imported(kind: KubeflowKind, framework: str) -> None:
    files = dict(write_kubeflow(small_run("master", "worker.1", "worker.2", framework=framework), kind))
    (text,) = (file.text for name, file in files.items() if name.endswith("job.yaml"))
    found = import_manifest(text, "job.yaml")
    spec = load_config(found.text)
    assert [job.name for job in make_plan(spec, (), Manifest()).jobs] == ["master", "worker.1", "worker.2"]
    assert not [one.name for one in spec.train.env if is_reserved(one.name)]
    (left,) = (one for one in found.left_out if one.startswith("variables that riseml itself sets: "))
    assert {"OUTPUT_DIR", "RISEML_JOB"} <= set(left.partition(": ")[2].split(", "))


@pytest.mark.parametrize(
    ("changes", "replicas", "words"),
    [
        ({}, ".inf", r"Worker\.replicas is not a whole number"),
        ({}, "-1", r"Worker\.replicas is not a whole number"),
        ({"resources": {"limits": {"memory": "9" * 400 + "Gi"}}}, "1", "the number is too large"),
        ({"resources": {"limits": {"cpu": "many"}}}, "1", r"limits\.cpu is not a number of cores"),
        ({"command": "python train.py"}, "1", r"containers\[0\]\.command is not a list of texts"),
        ({"env": {"A": "b"}}, "1", r"containers\[0\]\.env is not a list"),
    ],
)
def test_values_that_no_manifest_has_are_refused_by_their_path(
    changes: dict[str, object], replicas: str, words: str
) -> None:
    text = yaml.safe_dump(json.loads(write("TFJob", "tfReplicaSpecs", {"Worker": 1}, **changes)))
    with pytest.raises(UsageError, match=words):
        import_manifest(text.replace("replicas: 1\n", f"replicas: {replicas}\n"), "job.yaml")


def test_texts_stay_as_they_are_written() -> None:
    text = write("TFJob", "tfReplicaSpecs", {"Worker": 1}, image="2024-99-99", args=["--at", "1e-3", "--on", "yes"])
    train = load_config(import_manifest(text, "job.yaml").text).train
    assert train.run == ("python train.py --lr 0.1 --at 1e-3 --on yes",)
    assert train.image == "2024-99-99"


def test_an_mpi_job_without_horovod_is_refused() -> None:
    pod = {"template": {"spec": {"containers": [{"image": "pi", "command": ["mpirun", "-n", "2", "./pi"]}]}}}
    job = {"kind": "MPIJob", "metadata": {"name": "pi"}, "spec": {"mpiReplicaSpecs": {"Launcher": pod, "Worker": pod}}}
    with pytest.raises(UsageError, match="neither its command nor its image names Horovod"):
        import_manifest(json.dumps(job), "job.yaml")


def test_a_launcher_with_an_open_quote_is_refused() -> None:
    pod = {"template": {"spec": {"containers": [{"image": "pi", "command": ["sh", "-c", "mpirun 'horovod"]}]}}}
    job = {"kind": "MPIJob", "metadata": {"name": "pi"}, "spec": {"mpiReplicaSpecs": {"Launcher": pod, "Worker": pod}}}
    with pytest.raises(UsageError, match="a line with an open quote"):
        import_manifest(json.dumps(job), "job.yaml")
