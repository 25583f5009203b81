"""A riseml.yml from a job of Kubeflow or from a compose file."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from riseml.base.errors import UsageError
from riseml.capsules.kubeflow_files import PYTORCHJOB, TFJOB, KubeflowKind, write_kubeflow
from riseml.capsules.manifest_import import import_manifest
from riseml.frameworks.registry import find_framework
from riseml.planning.image import Manifest
from riseml.planning.launch import is_reserved
from riseml.planning.plan import make_plan
from riseml.spec.config.loader import check_config, load_config
from tests.unit.capsules.test_exports import small_run

TABLE = Path(__file__).with_name("imports.txt")


def read_cases() -> list[tuple[str, str, str, str]]:
    cases = []
    for block in TABLE.read_text(encoding="utf-8").split("\n===== ")[1:]:
        title, _, body = block.partition("\n")
        text, config, notes = body.split(">>>>>\n")
        cases.append((title, text, config, notes.strip("\n")))
    return cases


CASES = read_cases()


@pytest.mark.parametrize(("text", "config", "notes"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_form_is_taken_over_and_each_field_that_is_not_is_named(text: str, config: str, notes: str) -> None:
    imported = import_manifest(text, "job.yaml", "folder")
    said = [f"not taken over: {part}" for part in imported.left_out]
    said += [f"changed: {part}" for part in imported.changed]
    said += [f"to do: {imported.to_fill}"] if imported.to_fill else []
    assert (imported.text, "\n".join(said)) == (config, notes)
    assert check_config(imported.text, "riseml.yml").problems == ()


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


@pytest.mark.parametrize("text", ["", "[]", "kind: Pod", "kind: TFJob", "kind: TFJob\nspec: 7", "[" * 500])
def test_an_invalid_manifest_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        import_manifest(text, "job.yaml")


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: XGBoostJob", "XGBoostJob: riseml has no framework that sets up XGBoost's tracker"),
        ("kind: PaddleJob", "no framework for PaddlePaddle"),
        ("kind: Service\n---\nkind: Pod\n", "has Service, Pod: riseml imports a TFJob"),
        ("kind: List\nitems: [{kind: TFJob}, {kind: JAXJob}]", r"several jobs \(TFJob, JAXJob\)"),
        ("services: {}", "services is not a mapping with a service"),
        ("services: {a: {command: 'x \"y'}}", "a quote is open"),
        ("a: &a [*a]", "is not YAML that riseml reads"),
    ],
)
def test_a_file_that_riseml_does_not_run_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        import_manifest(text, "job.yaml")


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


@pytest.mark.parametrize("form", ["a list", "a mapping"])
def test_no_name_in_a_compose_file_becomes_a_command(form: str) -> None:
    names = ("X; touch TAKEN #", "a.b", "1A", "A\nB", "", "$(id)")
    environment: object = {name: "1" for name in names} | {"GOOD": "$(id)"}
    if form == "a list":
        environment = [f"{name}=1" for name in names] + ["GOOD=$(id)"]
    service = {"image": "lab/x\ntouch TAKEN", "environment": environment}
    found = import_manifest(json.dumps({"services": {"a": service}}), "compose.yaml")
    comment = "# Replace COMMAND: it stands for the command of the image lab/x touch TAKEN."
    assert yaml.safe_load(found.text)["train"]["roles"]["a"]["run"].splitlines() == [
        comment,
        "export GOOD='$(id)'",
        "COMMAND",
    ]
    assert found.left_out == tuple(f"services.a.environment: no shell sets a variable named {name}" for name in names)


def import_services(*services: str) -> list[tuple[str, str]]:
    """Import a compose file with some services; return each role with its service, in the order of riseml.yml."""
    bodies = {name: {"image": "a", "command": f"run {place}"} for place, name in enumerate(services)}
    found = import_manifest(json.dumps({"services": bodies}), "compose.yaml")
    assert check_config(found.text).problems == ()
    roles = yaml.safe_load(found.text)["train"]["roles"]
    return [(services[int(role["run"].removeprefix("run "))], name) for name, role in roles.items()]


def test_services_whose_names_no_role_may_have_become_roles_with_others() -> None:
    names = ("localhost", "role", "riseml", "docker", "ray", "build", "tensorboard", "notebook")
    assert import_services(*names) == [(name, f"{name}-service") for name in names]


@pytest.mark.parametrize(
    ("services", "roles"),
    [
        (("a_b", "c", "a-b"), ("a-b-two", "c", "a-b")),
        (("A", "a_", "a"), ("a-two", "a-three", "a")),
        (("ray", "ray-service"), ("ray-service-two", "ray-service")),
        ((*(f"{'x' * 40}_{letter}" for letter in "abc"),), ("x" * 25, f"{'x' * 25}-two", f"{'x' * 25}-three")),
        (("w" * 40, "w" * 41), ("w" * 40, "w" * 25)),
        (("a--b", "a\n"), ("a--b", "a")),
    ],
)
def test_a_service_whose_name_a_role_may_have_keeps_it(services: tuple[str, ...], roles: tuple[str, ...]) -> None:
    assert import_services(*services) == list(zip(services, roles, strict=True))
