"""Convert a job of Kubeflow's training operator to a riseml.yml, and list what is left out.

The forms of the manifests are those of the training operator 1.9 (kubeflow.org/v1) and of the MPI operator (v1,
v2beta1).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.capsules.foreign_fields import (
    ForeignFields,
    ForeignValueError,
    ImportedConfig,
    join_words,
    name_project,
    quote_pieces,
    read_cores,
    read_memory,
)
from riseml.capsules.imported_yaml import write_config
from riseml.spec.config.parameters import is_set_by_riseml

_JOB_RETRIES = 6  # without a backoffLimit, Kubernetes starts again for ever; its Jobs have this limit
_RESTART_POLICIES = frozenset({"OnFailure", "Always", "ExitCode"})
# the defaults of `resources` in riseml.yml
_DEFAULT_RESOURCES: Mapping[str, object] = {"cpus": 1.0, "mem": "1024MiB", "gpus": 0}
_CLUSTER_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
_LEFT_OUT_REASONS = {
    "cleanPodPolicy": "riseml removes every job once the experiment has ended",
    "ttlSecondsAfterFinished": "riseml removes every job once the experiment has ended",
    "schedulingPolicy": "all jobs of an experiment get their places at once or none does",
    "priorityClass": "write `priority` under `train`",
    "priorityClassName": "write `priority` under `train`",
    "nodeSelector": "write `labels` under `resources`, with labels of your pool.yml",
    "affinity": "write `labels` under `resources`, with labels of your pool.yml",
    "tolerations": "write `labels` under `resources`, with labels of your pool.yml",
    "volumes": "jobs have OUTPUT_DIR, and DATA_DIR to read",
    "volumeMounts": "jobs have OUTPUT_DIR, and DATA_DIR to read",
    "imagePullPolicy": "`riseml train --pull` asks the registry again",
    "imagePullSecrets": "the engines of the hosts log in to the registry",
    "hostNetwork": "pool.yml has `network: host`",
    "initContainers": "write their steps as `install`",
    "envFrom": "name each variable in `env`",
    "ports": "every job reaches all ports of the others",
    "securityContext": "jobs run as the user who submits them",
    "namespace": "riseml has projects",
}

_JAX_VARIABLES: Mapping[str, str] = {
    "COORDINATOR_ADDRESS": "${JAX_COORDINATOR_ADDRESS%:*}",
    "COORDINATOR_PORT": "${JAX_COORDINATOR_ADDRESS##*:}",
    "NUM_PROCESSES": "$JAX_NUM_PROCESSES",
    "PROCESS_ID": "$JAX_PROCESS_ID",
}
"""The variables of a JAXJob, and how a shell makes each from those of riseml."""

_PYTORCH_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "PET_NNODES", "PET_NPROC_PER_NODE")

_MPI_LAUNCHERS = frozenset({"mpirun", "mpiexec", "orterun", "horovodrun"})
_ONE_VALUE_OPTIONS = re.compile(
    r"-(?:np|n|c|N|npernode|ppn|H|host|hostfile|machinefile|f|bind-to|map-by|rank-by|wdir|wd|x|p)"
    r"|--(?:np|npernode|hosts?|hostfile|machinefile|bind-to|map-by|rank-by|wdir|prefix|tune)"
    r"|--(?:num-proc|(?:min|max)-(?:np|num-proc)|slots(?:-per-host)?|host-discovery-script|ssh-port)"
    r"|--(?:network-interfaces?|start-timeout|output-filename|log-level|config-file|fusion-threshold-mb)"
    r"|--(?:cycle-time-ms|cache-capacity|timeline-filename|reset-limit|elastic-timeout)"
)
"""Options of mpirun and horovodrun that take the next word as their value."""

_TWO_VALUE_OPTIONS = frozenset(("-mca", "--mca", "-gmca", "--gmca", "-genv", "-env"))
_PLAIN_SCRIPT = re.compile(r"[^;&|<>()`\n]*")  # a script of a shell that is one command
_FRAMEWORK_WORDS = {"pytorch": re.compile(r"torch"), "tensorflow": re.compile(r"tensorflow|keras|(?<![a-z])tf[\d_.-]")}


@dataclass(frozen=True, slots=True)
class KubeflowJob:
    """A kind of job of the training operator."""

    specs: str  # the key of its replicas
    container: str  # the name of the container that the operator looks for
    framework: str  # name of the framework for riseml; empty: the command decides
    variables: tuple[str, ...] = ()  # that the operator sets in a group


KUBEFLOW_JOBS: Mapping[str, KubeflowJob] = {
    "TFJob": KubeflowJob("tfReplicaSpecs", "tensorflow", "tensorflow"),
    "PyTorchJob": KubeflowJob("pytorchReplicaSpecs", "pytorch", "pytorch", (*_PYTORCH_VARIABLES, "PET_NODE_RANK")),
    "JAXJob": KubeflowJob("jaxReplicaSpecs", "jax", "jax", tuple(_JAX_VARIABLES)),
    "MPIJob": KubeflowJob("mpiReplicaSpecs", "mpi", ""),
}


@dataclass(frozen=True, slots=True)
class MpiCommand:
    """What a launcher starts."""

    launcher: str  # mpirun, horovodrun, ...; empty: the command has none
    framework: str  # name of the framework for riseml
    program: tuple[str, ...]  # the command of each rank; empty: the image has it
    variables: tuple[str, ...]  # that the launcher passes on with a value: `NAME=value`
    options: tuple[str, ...]  # options of the launcher, which riseml does not need


def convert_kubeflow(manifest: ForeignFields, kind: str) -> ImportedConfig:
    """Return the riseml.yml of a job of the training operator.

    Raises:
        ForeignValueError: a value is not what the operator takes.
        UsageError: riseml does not run such a job.
    """
    job = KUBEFLOW_JOBS[kind]
    manifest.take("apiVersion", "kind", "status")
    metadata = manifest.section("metadata")
    metadata.take(*_CLUSTER_FIELDS)
    spec = manifest.section("spec")
    project = name_project(metadata.text("name") or metadata.text("generateName"))
    replicas = _read_replicas(spec, job)
    if kind == "MPIJob":
        return _convert_mpi(manifest, spec, project, replicas)
    lead = next((replicas[role] for role in ("chief", "master", "worker") if role in replicas), None)
    if lead is None:
        raise ForeignValueError(spec.name_key(job.specs), "a mapping with Chief, Master or Worker")
    processes = _read_processes(spec) if kind == "PyTorchJob" else None
    train: dict[str, Any] = {"framework": job.framework, "image": lead.image}
    has_group = job.framework == "jax" or "master" in replicas
    train["run"], to_fill = _make_run(lead, job.variables if has_group else ())
    if job.framework == "jax":
        train["run"] = f"{_write_jax_variables()}\n{train['run']}"
    train |= _make_common(lead)
    cluster = _make_cluster(replicas, job.framework, processes, lead)
    if cluster:
        train[job.framework] = {"distributed": cluster}
    policy, changed = _read_policy(spec, [*replicas.values()])
    notes = [*_note_differences(lead, replicas.values()), *_note_elastic(spec)]
    left_out = (*map(_explain_left, manifest.list_left()), *notes)
    text = write_config({"project": project, "train": train | policy})
    return ImportedConfig(project, text, left_out, changed, to_fill)


def read_mpi_command(words: Sequence[str], image: str) -> MpiCommand:
    """Return what the launcher of an MPIJob, mpirun or horovodrun, starts, and for which framework.

    Args:
        words: its command with all arguments.
        image: the image of the workers.

    Raises:
        UsageError: it is not a training with Horovod, or not one command.
    """
    line = _read_launcher_line(words)
    options: list[str] = []
    variables: list[str] = []
    launcher = line[0].rpartition("/")[2] if line else ""
    if launcher in _MPI_LAUNCHERS:
        line = line[1:]
        while line and line[0].startswith("-"):
            size = 3 if line[0] in _TWO_VALUE_OPTIONS else 2 if _ONE_VALUE_OPTIONS.fullmatch(line[0]) else 1
            if line[0] == "-x" and "=" in "".join(line[1:2]):
                variables.append(line[1])
            else:
                options += line[:size]
            line = line[size:]
    text = " ".join(line).lower()
    if "horovod" not in f"{text} {image} {' '.join(words)}".lower() and "hvd" not in text:
        raise UsageError(
            "an MPIJob is imported when it trains with Horovod, whose ranks riseml starts itself, without mpirun;"
            " neither its command nor its image names Horovod",
            "when its program calls `hvd.init()`, write a riseml.yml with `horovod` (`riseml docs frameworks`)",
        )
    return MpiCommand(launcher, _choose_framework(text, image.lower()), tuple(line), tuple(variables), tuple(options))


def _read_launcher_line(words: Sequence[str]) -> list[str]:
    """Return the words of a launcher's command, also of one inside `sh -c`."""
    if len(words) != 3 or words[0].rpartition("/")[2] not in ("sh", "bash") or not re.fullmatch("-[a-z]*c", words[1]):
        return list(words)
    if not _PLAIN_SCRIPT.fullmatch(words[2].strip()):
        raise UsageError(
            "the launcher of the MPIJob runs a script of several commands, and riseml starts each rank with one",
            "write a riseml.yml with `horovod`: `riseml init --framework pytorch` begins one",
        )
    try:
        return shlex.split(words[2])
    except ValueError:
        raise UsageError("the launcher of the MPIJob runs a line with an open quote", "correct the file") from None


@dataclass(frozen=True, slots=True)
class _Replica:
    """The jobs of one role."""

    role: str  # as the manifest names it
    count: int
    restart: str  # the policy; empty: none was written
    image: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    folder: str  # its working folder; empty: that of the image
    variables: tuple[str, ...]  # `NAME=value`; `NAME` alone: its value is passed on from the user's shell
    own_variables: tuple[str, ...]  # names that riseml itself sets
    resources: Mapping[str, object]
    limits: Mapping[str, object]
    shm: str  # size of /dev/shm; empty: none was written
    sidecars: tuple[str, ...]  # paths of further containers


def _convert_mpi(
    manifest: ForeignFields, spec: ForeignFields, project: str, replicas: Mapping[str, _Replica]
) -> ImportedConfig:
    """Return the riseml.yml of an MPIJob that trains with Horovod: riseml starts the ranks itself, without mpirun."""
    launcher = replicas.get("launcher")
    worker = replicas.get("worker")
    if launcher is None or worker is None:
        raise ForeignValueError(spec.name_key("mpiReplicaSpecs"), "a mapping with Launcher and Worker")
    started = read_mpi_command(launcher.command + launcher.arguments, worker.image)
    spec.take("sshAuthMountPath", "mpiImplementation", "launcherCreationPolicy", "runLauncherAsWorker")
    train: dict[str, Any] = {"framework": started.framework, "image": worker.image}
    train["run"], to_fill = _make_mpi_run(started, launcher)
    train |= _make_common(worker)
    if started.variables:
        own = [name for name in started.variables if not is_set_by_riseml(name.partition("=")[0], started.framework)]
        train["env"] = [*train.get("env", []), *own]
    horovod: dict[str, Any] = {"workers": worker.count, "processes": spec.whole("slotsPerWorker", 1)}
    train[started.framework] = {"horovod": horovod}
    policy, changed = _read_policy(spec, [launcher, worker])
    paths = [path for replica in (launcher, worker) for path in replica.sidecars]
    notes = [f"{path}: a job is one container" for path in paths]
    notes.append("the launcher: riseml starts the ranks itself, so that it needs no mpirun, horovodrun or ssh")
    if started.options:
        notes.append(f"options of {started.launcher}: {shlex.join(started.options)}")
    left_out = (*map(_explain_left, manifest.list_left()), *notes)
    text = write_config({"project": project, "train": train | policy})
    return ImportedConfig(project, text, left_out, changed, to_fill)


def _explain_left(path: str) -> str:
    reason = _LEFT_OUT_REASONS.get(path.rpartition(".")[2])
    return f"{path}: {reason}" if reason else path


def _read_replicas(spec: ForeignFields, job: KubeflowJob) -> dict[str, _Replica]:
    """Return the replicas by their roles in small letters."""
    specs = spec.section(job.specs)
    return {name.lower(): _read_replica(specs.section(name), name, job) for name in specs.names()}


def _read_replica(replica: ForeignFields, role: str, job: KubeflowJob) -> _Replica:
    template = replica.section("template")
    pod = template.section("spec")
    restart = replica.text("restartPolicy") or pod.text("restartPolicy")
    containers = pod.sections("containers")
    if not containers:
        raise ForeignValueError(pod.name_key("containers"), "a list with a container")
    container = next((part for part in containers if part.peek("name") == job.container), containers[0])
    sidecars = [other for other in containers if other is not container]
    for other in sidecars:
        other.take(*other.names())  # one note names it whole
    container.take("name", "ports")
    if container.peek("imagePullPolicy") != "Always":
        container.take("imagePullPolicy")
    variables, own = _read_variables(container, job.framework)
    resources, limits = _read_resources(container.section("resources"))
    return _Replica(
        role=role,
        count=replica.whole("replicas", 1),
        restart=restart,
        image=container.text("image"),
        command=tuple(container.words("command")),
        arguments=tuple(container.words("args")),
        folder=container.text("workingDir"),
        variables=variables,
        own_variables=own,
        resources=resources,
        limits=limits,
        shm=_read_shared_memory(pod, container),
        sidecars=tuple(other.path for other in sidecars),
    )


def _read_variables(container: ForeignFields, framework: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the variables for `env`, and the names of those that riseml itself sets."""
    variables = []
    own = []
    for part in container.sections("env"):
        name = part.text("name")
        source = part.peek("valueFrom")
        if is_set_by_riseml(name, framework or None):
            part.take("value", "valueFrom")
            own.append(name)
        elif source is None:
            variables.append(f"{name}={part.text('value')}")
        elif isinstance(source, dict) and source.keys() & {"secretKeyRef", "configMapKeyRef"}:
            part.take("valueFrom")
            variables.append(name)
    return tuple(variables), tuple(own)


def _read_resources(section: ForeignFields) -> tuple[dict[str, object], dict[str, object]]:
    """Return the guaranteed amounts and the limits; Kubernetes guarantees the limit where no request is written."""
    amounts: dict[str, object] = {}
    limits: dict[str, object] = {}
    for part, target in ((section.section("limits"), limits), (section.section("requests"), amounts)):
        if "cpu" in part:
            target["cpus"] = read_cores(part.text("cpu"), part.name_key("cpu"))
        if "memory" in part:
            target["mem"] = read_memory(part.text("memory"), part.name_key("memory"))
        if "nvidia.com/gpu" in part:
            target["gpus"] = part.whole("nvidia.com/gpu", 0)
    amounts = {**limits, **amounts}
    limits.pop("gpus", None)
    return amounts or {"cpus": 1.0}, limits


def _read_shared_memory(pod: ForeignFields, container: ForeignFields) -> str:
    """Return the size of a volume in memory at /dev/shm; empty when there is none."""
    mounts = container.peek("volumeMounts")
    volumes = pod.peek("volumes")
    if not isinstance(mounts, list) or not isinstance(volumes, list):
        return ""
    names = [mount.get("name") for mount in mounts if isinstance(mount, dict) and mount.get("mountPath") == "/dev/shm"]
    for index, volume in enumerate(volumes):
        source = volume.get("emptyDir") if isinstance(volume, dict) and volume.get("name") in names else None
        if isinstance(source, dict) and source.get("medium") == "Memory" and isinstance(source.get("sizeLimit"), str):
            if len(volumes) == 1:
                pod.take("volumes")
            if len(mounts) == 1:
                container.take("volumeMounts")
            return read_memory(source["sizeLimit"], f"{pod.name_key('volumes')}[{index}].emptyDir.sizeLimit")
    return ""


def _make_common(replica: _Replica) -> dict[str, Any]:
    """Return what a replica gives to `train`: resources, limits, variables, /dev/shm."""
    train: dict[str, Any] = {"resources": dict(replica.resources)}
    if replica.limits:
        train["limits"] = dict(replica.limits)
    if replica.variables:
        train["env"] = list(replica.variables)
    if replica.shm:
        train["shm_size"] = replica.shm
    return train


def _make_cluster(
    replicas: Mapping[str, _Replica], framework: str, processes: int | None, lead: _Replica
) -> dict[str, Any]:
    """Return the `distributed` section; empty for a single job."""
    first = next((replicas[role] for role in ("chief", "master") if role in replicas), None)
    worker = replicas.get("worker")
    workers = (first.count if first else 0) + (worker.count if worker else 0)
    cluster: dict[str, Any] = {"worker": workers}
    if worker is not None and worker is not lead and (differs := _find_other_resources(worker, lead)):
        cluster |= {"worker": {"count": workers, "resources": differs}, "master": {"resources": dict(lead.resources)}}
    if framework != "tensorflow":
        if processes is not None:
            cluster["processes"] = processes
        if workers > 1 or (processes or 1) > 1:
            return cluster
        # The operator gives a Master, and each JAXJob, the variables of a group, even where it is alone.
        return {"worker": 1} if first is not None or framework == "jax" else {}
    cluster |= _make_helpers(replicas, lead)
    if first is None:
        cluster["chief"] = "worker"
    return cluster if workers > 1 or cluster.keys() - {"worker", "chief"} else {}


def _make_helpers(replicas: Mapping[str, _Replica], lead: _Replica) -> dict[str, Any]:
    """Return the parameter servers and the evaluator of a cluster of TensorFlow."""
    helpers: dict[str, Any] = {}
    for role in ("ps", "evaluator"):
        replica = replicas.get(role)
        if replica is None or not replica.count:
            continue
        differs = _find_other_resources(replica, lead)
        count: dict[str, Any] = {"count": replica.count} if role == "ps" else {}
        short: object = replica.count if role == "ps" else True
        helpers[role] = {**count, "resources": differs} if differs else short
    return helpers


def _find_other_resources(replica: _Replica, lead: _Replica) -> dict[str, object]:
    """Return the resources of a role that differ from those of the leading one, which are the default of all."""
    keys = [key for key in _DEFAULT_RESOURCES if key in lead.resources or key in replica.resources]
    amounts = {key: replica.resources.get(key, _DEFAULT_RESOURCES[key]) for key in keys}
    return {
        key: amount for key, amount in amounts.items() if amount != lead.resources.get(key, _DEFAULT_RESOURCES[key])
    }


def _read_processes(spec: ForeignFields) -> int | None:
    """Return the number of processes in each container; None: as riseml chooses, one for each GPU."""
    elastic = spec.peek("elasticPolicy")
    text = spec.text("nprocPerNode")
    if not text and isinstance(elastic, dict):
        text = str(elastic.get("nProcPerNode", ""))
    if text in ("", "auto", "gpu"):
        return None
    if text == "cpu":
        raise UsageError(
            "nprocPerNode: cpu starts a process for each core of a host, which riseml does not know before",
            "write the number of processes",
        )
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) <= 1000):
        raise ForeignValueError(spec.name_key("nprocPerNode"), "a number of processes")
    return int(text)


def _make_run(replica: _Replica, of_operator: Sequence[str]) -> tuple[str, str]:
    """Return the lines of `run`, and what the user must fill in. `of_operator`: variables that the operator sets."""
    names = [variable.partition("=")[0] for variable in replica.variables] + [*replica.own_variables, *of_operator]
    folder = f"cd {shlex.quote(replica.folder)}\n" if replica.folder not in ("", "/code") else ""
    words = [*replica.command, *replica.arguments]
    if replica.command:
        return folder + _expand_variables(words, names), ""
    line = " ".join(["COMMAND", *([_expand_variables(words, names)] if words else [])])
    comment = f"# Replace COMMAND: it stands for the command of the image {replica.image}.\n"
    return comment + folder + line, _say_where(replica.image)


def _write_jax_variables() -> str:
    """Return the line of `run` that gives a script the names of the operator. JAX itself reads those of riseml."""
    return "export " + " ".join(f'{name}="{value}"' for name, value in _JAX_VARIABLES.items())


def _make_mpi_run(started: MpiCommand, launcher: _Replica) -> tuple[str, str]:
    folder = f"cd {shlex.quote(launcher.folder)}\n" if launcher.folder not in ("", "/code") else ""
    if started.program:
        return folder + join_words(list(started.program)), ""
    comment = f"# Replace COMMAND: it stands for the command of the image {launcher.image}.\n"
    return f"{comment}{folder}COMMAND", _say_where(launcher.image)


def _say_where(image: str) -> str:
    return (
        f"replace COMMAND in `run`: the manifest names no command, so it is that of the image;"
        f" `docker image inspect {image}` shows it as Entrypoint and Cmd"
    )


def _expand_variables(words: Sequence[str], names: Sequence[str]) -> str:
    """Return the words as a line of a shell; Kubernetes replaces `$(NAME)` in them, and reads `$$(NAME)` as a text."""
    reference = re.compile(r"\$\$(?=\()|\$\((" + "|".join(map(re.escape, names)) + r")\)" if names else r"\$\$(?=\()")

    def split(word: str) -> Iterator[tuple[str, bool]]:
        end = 0
        for match in reference.finditer(word):
            yield word[end : match.start()], False
            yield (f"${{{match[1]}}}", True) if match.lastindex else ("$", False)
            end = match.end()
        yield word[end:], False

    line = join_words(list(words), lambda word: quote_pieces(split(word)))
    if len(words) == 3 and line == words[2]:  # a script of a shell: its own quotes hold
        return reference.sub(lambda match: f"${{{match[1]}}}" if match.lastindex else "$", line)
    return line


def _read_policy(spec: ForeignFields, replicas: Sequence[_Replica]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return `retry` and `max_duration`, and what they change."""
    policy = spec.section("runPolicy")
    train: dict[str, Any] = {}
    changed: list[str] = []
    limit = policy.whole("backoffLimit", -1)
    if limit < 0:  # the MPI operator, and older versions, have it here
        limit = spec.whole("backoffLimit", -1)
    duration = policy.whole("activeDeadlineSeconds", 0) or spec.whole("activeDeadlineSeconds", 0)
    elastic = spec.peek("elasticPolicy")
    if limit < 0 and isinstance(elastic, dict) and str(elastic.get("maxRestarts", "")).isdigit():
        limit = int(str(elastic["maxRestarts"])[:4])
    restarts = sorted({replica.restart for replica in replicas if replica.restart in _RESTART_POLICIES})
    if restarts and limit != 0:
        train["retry"] = limit if limit > 0 else _JOB_RETRIES
        bound = "" if limit > 0 else f", and {_JOB_RETRIES} times instead of for ever"
        changed.append(f"restartPolicy: {', '.join(restarts)}: `retry` starts all jobs again, not one alone{bound}")
    elif limit > 0:
        changed.append(f"backoffLimit: {limit}: without a restartPolicy, nothing starts again")
    if duration:
        train["max_duration"] = f"{duration}s"
    return train, tuple(changed)


def _note_elastic(spec: ForeignFields) -> Iterator[str]:
    """Say what becomes of an elastic size."""
    if "elasticPolicy" not in spec:
        return
    elastic = spec.section("elasticPolicy")
    keys = ", ".join(f"{key}: {elastic.peek(key)}" for key in elastic.names() if isinstance(elastic.peek(key), str))
    elastic.take(*elastic.names())
    yield f"{elastic.path} ({keys}): the number of workers stays as it is, and torchrun finds the others by itself"


def _note_differences(lead: _Replica, replicas: Collection[_Replica]) -> Iterator[str]:
    """Say what roles have that the leading one does not: riseml has one image and one command for all of them."""
    for path in (path for replica in replicas for path in replica.sidecars):
        yield f"{path}: a job is one container"
    if lead.own_variables:
        yield f"variables that riseml itself sets: {', '.join(lead.own_variables)}"
    for replica in replicas:
        pairs = {
            "image": (replica.image, lead.image),
            "command": (replica.command + replica.arguments, lead.command + lead.arguments),
            "working folder": (replica.folder, lead.folder),
            "variables": (replica.variables, lead.variables),
            "limits": (replica.limits, lead.limits),
        }
        different = [name for name, (own, common) in pairs.items() if own != common]
        if different:
            yield f"{', '.join(different)} of {replica.role}: all jobs have those of {lead.role}"


def _choose_framework(program: str, image: str) -> str:
    """Return the framework that the program names, or else the image; TensorFlow where neither decides."""
    for text in (program, image):
        named = [framework for framework, pattern in _FRAMEWORK_WORDS.items() if pattern.search(text)]
        if len(named) == 1:
            return named[0]
    return "tensorflow"
