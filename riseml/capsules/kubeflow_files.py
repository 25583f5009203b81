"""A run as a TFJob or a PyTorchJob of Kubeflow's training operator (kubeflow.org/v1).

All replicas of a role share one template. Where jobs of a role differ, the command chooses by the number at the end of
the pod's name, which is its index.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.capsules.exported_run import (
    ANYWHERE,
    ExportedFile,
    ExportedJob,
    ExportedRun,
    check_framework,
    describe_run,
    fill_peers,
    list_roles,
    name_dockerfile,
    write_dockerfiles,
)
from riseml.capsules.exported_yaml import write_yaml

LAUNCHER_VARIABLES = frozenset({"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"})


@dataclass(frozen=True, slots=True)
class KubeflowKind:
    """One kind of job of the training operator."""

    kind: str
    framework: str  # the plug-in of riseml
    specs: str  # the key of its replicas
    container: str  # the name that the operator looks for
    roles: dict[str, str]  # type of riseml's jobs -> type of replica
    sets: frozenset[str]  # variables that the operator sets itself


TFJOB = KubeflowKind(
    "TFJob",
    "tensorflow",
    "tfReplicaSpecs",
    "tensorflow",
    {"master": "Chief", "worker": "Worker", "ps": "PS", "evaluator": "Evaluator", "train": "Worker"},
    frozenset({"TF_CONFIG"}),
)
PYTORCHJOB = KubeflowKind(
    "PyTorchJob",
    "pytorch",
    "pytorchReplicaSpecs",
    "pytorch",
    {"master": "Master", "worker": "Worker", "train": "Master"},
    frozenset(
        {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK"}
    ),
)


def write_kubeflow(run: ExportedRun, kind: KubeflowKind) -> Iterator[tuple[str, ExportedFile]]:
    """Yield the manifest and the Dockerfiles of its images.

    Raises:
        UsageError: the experiment has another framework, or a role that this kind does not have.
    """
    check_framework(run, kind.framework, kind.kind)
    replicas: dict[str, Any] = {}
    for role, jobs in list_roles(run).items():
        if role == "tensorboard":
            continue
        if role not in kind.roles:
            raise UsageError(f"a {kind.kind} has no replicas for {role}", f"--compose, {ANYWHERE}")
        replicas[kind.roles[role]] = _make_replica(run, kind, jobs)
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind.kind,
        "metadata": {"name": run.title},
        "spec": {"runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0}, kind.specs: replicas},
    }
    text = write_yaml(manifest)
    yield f"{kind.kind.lower()}.yaml", ExportedFile(_write_head(run) + text)
    yield from write_dockerfiles(run)


def _write_head(run: ExportedRun) -> str:
    images = [
        f"#   docker build -f {name_dockerfile(at)} -t {_name_image(run, at)} ."
        for at in range(len(run.capsule["environments"]))
    ]
    missing = sorted({name for job in run.jobs for name in job.missing})
    secret = [f"#   a secret {run.title}-env with the keys {', '.join(missing)}"] if missing else []
    lines = [
        f"# {describe_run(run)}.",
        "# It needs the images, under a name of your registry:",
        *images,
        "# and in its namespace",
        f"#   the volume claims {run.title}-output (of many writers) and {run.title}-data",
        *secret,
    ]
    return "\n".join(lines) + "\n"


def _name_image(run: ExportedRun, environment: int) -> str:
    return f"{run.title}:environment-{environment}"


def _make_replica(run: ExportedRun, kind: KubeflowKind, jobs: Sequence[ExportedJob]) -> dict[str, Any]:
    record = jobs[0].record
    amounts: dict[str, str] = {"cpu": f"{record['cpus']:g}", "memory": f"{record['mem_mib']}Mi"}
    limits: dict[str, str] = {}
    if record["cpus_limit"] is not None:
        limits["cpu"] = f"{record['cpus_limit']:g}"
    if record["mem_limit_mib"] is not None:
        limits["memory"] = f"{record['mem_limit_mib']}Mi"
    if record["gpus"]:
        limits["nvidia.com/gpu"] = str(record["gpus"])
    shared, command = _share_variables(run, kind, jobs)
    container: dict[str, Any] = {
        "name": kind.container,
        "image": _name_image(run, record["environment"]),
        "command": command,
        "workingDir": "/code",
        "env": [
            *({"name": name, "value": value} for name, value in shared.items()),
            *(_take_secret(run, name) for name in jobs[0].missing),
        ],
        "resources": {"requests": amounts} | ({"limits": limits} if limits else {}),
        "volumeMounts": [
            {"name": "output", "mountPath": "/output"},
            {"name": "data", "mountPath": "/data", "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    uid, _, gid = run.owner.partition(":")
    volumes = [
        {"name": "output", "persistentVolumeClaim": {"claimName": f"{run.title}-output"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": f"{run.title}-data", "readOnly": True}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{record['shm_mib']}Mi"}},
    ]
    pod = {
        "securityContext": {"runAsUser": int(uid), "runAsGroup": int(gid), "fsGroup": int(gid)},
        "containers": [container],
        "volumes": volumes,
    }
    return {"replicas": len(jobs), "restartPolicy": "Never", "template": {"spec": pod}}


def _take_secret(run: ExportedRun, name: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": f"{run.title}-env", "key": name}}}


def _share_variables(
    run: ExportedRun, kind: KubeflowKind, jobs: Sequence[ExportedJob]
) -> tuple[dict[str, str], list[str]]:
    """Return the variables that all jobs of a role have alike, and a command that adds what differs."""
    places = _name_pods(run, kind)
    values = [
        {name: fill_peers(value, places) for name, value in job.variables.items() if name not in kind.sets}
        for job in jobs
    ]
    commands = [[fill_peers(word, places) for word in job.command] for job in jobs]
    same = {
        name: value for name, value in values[0].items() if all(variables.get(name) == value for variables in values)
    }
    if all(variables == same for variables in values) and all(command == commands[0] for command in commands):
        *shell, script = commands[0]
        return same, [*shell, _unset_variables(kind, jobs[0]) + script]
    cases = []
    for at, (own, command) in enumerate(zip(values, commands, strict=True)):
        exports = [f"export {name}={shlex.quote(value)}" for name, value in own.items() if name not in same]
        cases.append("\n".join([f"{at})", *exports, f"exec {shlex.join(command)} ;;"]))
    return same, ["/bin/sh", "-ec", "\n".join(['case "${HOSTNAME##*-}" in', *cases, "esac"])]


def _unset_variables(kind: KubeflowKind, job: ExportedJob) -> str:
    """Return a line against what the operator alone sets: scripts take RANK as the sign of a group."""
    more = sorted(kind.sets & LAUNCHER_VARIABLES - job.variables.keys())
    return f"unset {' '.join(more)}\n" if more else ""


def _name_pods(run: ExportedRun, kind: KubeflowKind) -> Callable[[str], str]:
    """Return a function from a host name to the name of the pod, which the operator's service resolves."""
    names = {
        job.hostname: f"{run.title}-{kind.roles[role].lower()}-{at}"
        for role, jobs in list_roles(run).items()
        if role in kind.roles
        for at, job in enumerate(jobs)
    }
    return lambda hostname: names.get(hostname, hostname)
