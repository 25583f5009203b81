"""A riseml.yml from a manifest of Kubeflow."""

from __future__ import annotations

import json

import pytest
import yaml

from riseml.capsules.kubeflow_files import PYTORCHJOB, TFJOB, KubeflowKind, write_kubeflow
from riseml.capsules.kubeflow_import import import_manifest
from riseml.errors import UsageError
from riseml.planning.image import Manifest
from riseml.planning.launch import is_reserved
from riseml.planning.plan import make_plan
from riseml.spec.config.loader import load_config
from tests.unit.capsules.test_exports import small_run

CONTAINER = {
    "image": "mnist:1",
    "command": ["python", "train.py", "--lr", "0.1"],
    "env": [{"name": "MODE", "value": "fast"}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s"}}}],
    "resources": {"limits": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 1}},
    "volumeMounts": [],
}


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
        ("PyTorchJob", "pytorchReplicaSpecs", {"Master": 1}, "train"),
    ],
)
def test_replicas_become_jobs(kind: str, specs: str, roles: dict[str, int], jobs: str) -> None:
    found = import_manifest(write(kind, specs, roles), "job.yaml")
    spec = load_config(found.text)
    assert [job.name for job in make_plan(spec, (), Manifest()).jobs] == jobs.split()
    assert spec.train.run == ("python train.py --lr 0.1",)
    assert [(one.name, one.value) for one in spec.train.env] == [("MODE", "fast"), ("TOKEN", None)]
    assert (spec.train.resources.cpus, spec.train.resources.mem, spec.train.resources.gpus) == (0.5, 1024, 1)
    assert found.left_out == ("volumeMounts of the container",)


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


@pytest.mark.parametrize("text", ["", "[]", "kind: Pod", "kind: TFJob", "kind: TFJob\nspec: 7", "[" * 500])
def test_an_invalid_manifest_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        import_manifest(text, "job.yaml")


@pytest.mark.parametrize(
    ("changes", "replicas", "words"),
    [
        ({"image": "2024-99-99"}, "1", "month must be in 1..12"),
        ({}, ".inf", "a number is too large"),
        ({"resources": {"limits": {"memory": "9" * 400 + "Gi"}}}, "1", "a number is too large"),
    ],
)
def test_values_that_no_manifest_has_are_refused(changes: dict[str, object], replicas: str, words: str) -> None:
    text = yaml.safe_dump(json.loads(write("TFJob", "tfReplicaSpecs", {"Worker": 1}, **changes)))
    text = text.replace("'2024-99-99'", "2024-99-99").replace("replicas: 1\n", f"replicas: {replicas}\n")
    with pytest.raises(UsageError, match=words):
        import_manifest(text, "job.yaml")
