"""What an executor needs to start one placed job: command, variables, folders, addresses.

It calls the framework plug-in once for each launch (`bind_job`), and makes everything else from the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from riseml.base.names import JobName, experiment_name, hostname, join_address
from riseml.base.records import dataclass
from riseml.base.states import JobDuty
from riseml.frameworks.base import Binding, Framework
from riseml.frameworks.registry import find_framework
from riseml.job_programs import add_report_module, start_trainer_relay
from riseml.job_programs.group_shell import HOME_FOLDER, wait_for_group
from riseml.job_programs.script_shell import make_shell_command
from riseml.model import Environment, Experiment, InputFolder, Job, Launch, Mount, Plan, PlannedJob
from riseml.planning.template import fill_placeholders
from riseml.spec.config.parameters import RISEML_VARIABLES
from riseml.spec.config.types import FILE_TRACKERS, Shell, Tracker
from riseml.spec.pool.types import Volume
from riseml.spec.scalars.bash_words import describe_for_sh
from riseml.spec.scalars.placeholders import variable_name

OUTPUT = "/output"
DATA = "/data"
INPUTS = "/inputs"
OUTPUTS = "/outputs"
"""Where a companion that reads outputs finds them, as below the root of outputs: /outputs/paul/toaster/4."""

JOB_PORT = 2222
"""The port of every job that has its own address."""

_LEAST_SHM = 1024  # MiB


@dataclass(frozen=True, slots=True)
class JobFolders:
    """The folders as the processes of a job see them."""

    output: str  # the output folder of the experiment
    data: str  # the data folder
    home: str = HOME_FOLDER  # the home folder of the user
    inputs: Environment = ()  # names of inputs, and their paths


CONTAINER_FOLDERS = JobFolders(OUTPUT, DATA)
"""The folders as a container sees them when the output root is a folder of the host."""


@dataclass(frozen=True, slots=True)
class StorageRoots:
    """The storage as a host sees it: each root is a folder of the host, or a volume."""

    output: str | Volume  # the folder of all outputs
    data: str | Volume
    home: str = HOME_FOLDER  # the home folder of the user


@dataclass(frozen=True, slots=True)
class DataView:
    """The data of one experiment, where its hosts have it."""

    folder: str  # with a link to each part, for jobs that are processes
    # paths in the data folder of the jobs (empty: the folder itself), and the folders of the host or its volumes
    parts: tuple[tuple[str, str | Volume], ...] = ()


AddressTokens = tuple[str, str]
"""Placeholders for the address and the port of a job until its host knows both."""


@dataclass(frozen=True, slots=True)
class LaunchTarget:
    """What the launches of one server on one executor have in common."""

    server: str  # id of the server that owns the jobs
    roots: StorageRoots
    contained: bool = True  # False: the job is a process of the host, without a container
    view: DataView | None = None  # None: the experiment names no data, and its jobs see the whole data folder
    # placeholders of addresses that only the host knows; None: all addresses are known
    tokens: Mapping[JobName, AddressTokens] | None = None


@dataclass(frozen=True, slots=True)
class BoundJob:
    """One job, bound to the addresses of its gang by the plug-in of its framework."""

    experiment: Experiment
    job: Job
    planned: PlannedJob
    framework: Framework
    binding: Binding  # the plug-in's answer for this job
    folders: JobFolders
    tokens: AddressTokens | None = None  # tokens of this job; None: its address is known


def bind_job(
    experiment: Experiment,
    job: Job,
    folders: JobFolders = CONTAINER_FOLDERS,
    tokens: Mapping[JobName, AddressTokens] | None = None,
) -> BoundJob:
    """Return the job, bound to the addresses of its gang; the only caller of a plug-in's `bind`.

    Example:
        variables = dict(job_variables(bind_job(experiment, job)))

    Raises:
        LookupError: the plan has no such job.
    """
    framework = find_framework(experiment.plan.framework)
    planned = find_planned_job(experiment, job.name)
    addresses = job_addresses(experiment) if tokens is None else {name: ":".join(pair) for name, pair in tokens.items()}
    binding = framework.bind(experiment.plan, job.name, addresses)
    own = None if tokens is None else tokens[job.name]
    return BoundJob(experiment, job, planned, framework, binding, folders, own)


def make_launch(experiment: Experiment, job: Job, target: LaunchTarget) -> Launch:
    """Return everything that an executor needs to start `job`, whose experiment has a place."""
    bound = bind_job(experiment, job, job_folders(experiment, target), target.tokens)
    planned = bound.planned
    name = experiment_name(experiment.number, experiment.sub)
    command = add_reports(bound, job_command(bound, announces=True))
    readers = count_event_readers(experiment.plan)
    patterns = list_event_files(experiment.plan, job.name)
    reads = readers > 0 and planned.part is not JobDuty.WATCHES
    followed = [tracker for tracker in experiment.plan.policy.track if tracker in FILE_TRACKERS]
    trackers = tuple(tracker.value for tracker in followed) if reads else ()
    reader = (str(readers), "", ",".join(trackers), *patterns) if reads else ()
    return Launch(
        key=experiment.key_of(job),
        server=target.server,
        title=f"{experiment.owner.user}.{name}.{job.name}",
        hostname=hostname(job.name),
        image=experiment.image_of(job.name),
        command=wait_for_group(command, reader) if target.contained else command,
        environment=job_variables(bound),
        resources=planned.resources,
        limits=planned.limits,
        shm_size=choose_shm_size(experiment.plan, planned),
        owner=experiment.owner,
        snapshot="" if experiment.reads else experiment.snapshot,
        mounts=job_mounts(experiment, target),
        network=experiment.network,
        subnet=experiment.subnet,
        address=job.address,
        hosts=tuple((hostname(peer.name), peer.address) for peer in experiment.gang if peer.address),
        gpus=job.gpus,
        event_readers=readers if reads else 0,
        event_files=patterns,
        trackers=trackers,
    )


def count_event_readers(plan: Plan) -> int:
    """Return beside how many jobs of an experiment a program reads files with metrics."""
    if plan.companion is not None or FILE_TRACKERS.isdisjoint(plan.policy.track):
        return 0
    return sum(planned.part is not JobDuty.WATCHES for planned in plan.jobs)


def list_event_files(plan: Plan, job: JobName) -> tuple[str, ...]:
    """Return the patterns of `outputs` that are below the working folder of a job."""
    return tuple(pattern for pattern in plan.list_outputs(job) if not pattern.startswith(("/", "~")))


def job_lines(bound: BoundJob) -> tuple[str, ...]:
    """Return the lines of `run` of one job, with every placeholder filled."""
    folders = {"output_dir": bound.folders.output, "data_dir": bound.folders.data}
    values = {**bound.binding.placeholders, **folders, **dict(bound.experiment.plan.parameters)}
    return tuple(fill_placeholders(line, values) for line in bound.planned.run)


def job_command(bound: BoundJob, *, announces: bool = False) -> tuple[str, ...]:
    """Return the command that runs the lines of `run` as one script, which stops at the first failing line. The last
    word is the script.

    Args:
        bound: the job.
        announces: whether the job reports to the server which shell it has.
    """
    lines = job_lines(bound)
    shell = bound.planned.shell
    script = bound.framework.script(bound.experiment.plan, bound.planned.name, lines)
    notice = describe_for_sh(lines) if shell is Shell.AUTO else ""
    return make_shell_command(shell, script, variables=dict(job_variables(bound)), announces=announces, notice=notice)


def add_reports(bound: BoundJob, command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command with the module that lets its programs report metrics, and with the relay of a trainer where
    riseml.yml names it; a companion has none.
    """
    plan = bound.experiment.plan
    if plan.companion is not None:
        return command
    *shell, script = command
    if Tracker.KUBEFLOW in plan.policy.track and bound.planned.part is not JobDuty.WATCHES:
        script = start_trainer_relay() + script
    return (*shell, add_report_module(script))


def job_variables(bound: BoundJob) -> Environment:
    """Return the environment variables of one job.

    A later group overrides an earlier one: riseml's defaults, the user's `env`, the parameters (so that each point of a
    grid has the values that its name says), riseml's own variables, the framework's variables.
    """
    experiment = bound.experiment
    plan = bound.experiment.plan
    user = bound.experiment.owner.user
    variables = {
        **{"PYTHONUNBUFFERED": "1", "HOME": bound.folders.home, "USER": user, "LOGNAME": user},
        **_list_mlflow_variables(bound),
        **_list_wandb_variables(bound),
        **{name: value for name, value in experiment.environment if not is_reserved(name)},
        **list_parameter_variables(plan),
        **_own_variables(bound),
        **bound.binding.variables,
    }
    return tuple(variables.items())


def _list_mlflow_variables(bound: BoundJob) -> dict[str, str]:
    """Return the variables by which MLflow's client writes its runs into a folder of the job below OUTPUT_DIR.

    MLflow 3.7 and newer write into a folder only when they are told that this is meant.
    """
    plan = bound.experiment.plan
    if Tracker.MLFLOW not in plan.policy.track or plan.companion is not None:
        return {}
    own = f"/{bound.job.name}" if len(plan.jobs) > 1 else ""
    return {"MLFLOW_TRACKING_URI": f"{bound.folders.output}/mlruns{own}", "MLFLOW_ALLOW_FILE_STORE": "true"}


def _list_wandb_variables(bound: BoundJob) -> dict[str, str]:
    """Return the variables by which wandb writes its runs below OUTPUT_DIR, and calls nobody."""
    plan = bound.experiment.plan
    if Tracker.WANDB not in plan.policy.track or plan.companion is not None:
        return {}
    return {"WANDB_MODE": "offline", "WANDB_DIR": bound.folders.output, "WANDB_ERROR_REPORTING": "false"}


def list_parameter_variables(plan: Plan) -> dict[str, str]:
    """Return the variables that the parameters of a plan become, with their values."""
    names = dict(plan.policy.variables)
    variables = {names.get(name, variable_name(name)): value for name, value in plan.parameters}
    return {name: value for name, value in variables.items() if name}


def is_reserved(name: str) -> bool:
    """Return True for a variable that only riseml sets, or leaves unset: a single job has no TF_CONFIG, whatever `env`
    says.
    """
    return name in RISEML_VARIABLES or name.startswith("RISEML_")


def find_tf_config(experiment: Experiment, job: Job) -> dict[str, object] | None:
    """Return the TF_CONFIG in the environment of a job as a value; None when the job has none."""
    text = dict(job_variables(bind_job(experiment, job))).get("TF_CONFIG")
    return None if text is None else json.loads(text)


def choose_shm_size(plan: Plan, planned: PlannedJob) -> int:
    """Return the size of /dev/shm in MiB: `shm_size` of the file, else half of the job's memory and at least 1 GiB.

    The default of Docker, 64 MiB, is too small for the data loaders of most frameworks.
    """
    return max(_LEAST_SHM, planned.resources.mem // 2) if plan.policy.shm_size is None else plan.policy.shm_size


def job_addresses(experiment: Experiment) -> dict[JobName, str]:
    """Return `host:port` of every job, as its peers reach it; an IPv6 address has brackets.

    Before placement these are the addresses on a network of the experiment's own: `worker-1:2222`.
    """
    addresses: dict[JobName, str] = {}
    for job in experiment.gang:
        host = job.address if job.port is not None and job.address is not None else hostname(job.name)
        addresses[job.name] = join_address(host, job.port or JOB_PORT)
    return addresses


def make_address_tokens(job: JobName) -> AddressTokens:
    """Return the placeholders of a job's address and port; a shell and JSON leave these texts as they are."""
    return f"riseml-host-of-{hostname(job)}-end", f"riseml-port-of-{hostname(job)}-end"


def job_folders(experiment: Experiment, target: LaunchTarget) -> JobFolders:
    """Return the folders as the experiment's jobs see them. All experiments share the root of a volume: it is mounted
    whole.
    """
    if experiment.reads:
        return JobFolders(OUTPUTS if target.contained else str(target.roots.output), DATA, target.roots.home)
    below = str(output_folder(experiment))
    root = target.roots.output
    if not target.contained:
        data = str(target.roots.data) if target.view is None else target.view.folder
        inputs = tuple((source.name, f"{root}/{source.below}") for source in experiment.plan.inputs)
        return JobFolders(f"{root}/{below}", data, target.roots.home, inputs)
    if isinstance(root, Volume):
        inputs = tuple((source.name, f"{INPUTS}/{source.name}/{source.below}") for source in experiment.plan.inputs)
        return replace(CONTAINER_FOLDERS, output=f"{OUTPUT}/{below}", inputs=inputs)
    inputs = tuple(
        (source.name, str(PurePosixPath(INPUTS, source.name, source.path))) for source in experiment.plan.inputs
    )
    return replace(CONTAINER_FOLDERS, inputs=inputs)


def job_mounts(experiment: Experiment, target: LaunchTarget) -> tuple[Mount, ...]:
    """Return what a container of the experiment mounts from the storage."""
    roots = target.roots
    if experiment.reads:
        return _reading_mounts(experiment, roots)
    if isinstance(roots.output, Volume):
        output = Mount(roots.output.name, OUTPUT, volume=roots.output)
    else:
        output = Mount(f"{roots.output}/{output_folder(experiment)}", OUTPUT)
    inputs = tuple(_mount_input(source, roots.output) for source in experiment.plan.inputs)
    if target.view is not None:
        return output, *(_mount_data(name, place) for name, place in target.view.parts), *inputs
    if isinstance(roots.data, Volume):
        return output, Mount(roots.data.name, DATA, read_only=True, volume=roots.data), *inputs
    return output, Mount(roots.data, DATA, read_only=True), *inputs


def _mount_input(source: InputFolder, root: str | Volume) -> Mount:
    """Return the whole output that an input is a part of, and of a volume all outputs. An engine follows links in what
    it mounts, and jobs make links in their outputs: a part of an output may lead anywhere on the host.
    """
    target = f"{INPUTS}/{source.name}"
    if isinstance(root, Volume):
        return Mount(root.name, target, read_only=True, volume=root)
    return Mount(f"{root}/{source.folder}", target, read_only=True)


def _mount_data(name: str, place: str | Volume) -> Mount:
    target = f"{DATA}/{name}" if name else DATA
    if isinstance(place, Volume):
        return Mount(place.name, target, read_only=True, volume=place)
    return Mount(place, target, read_only=True)


def _reading_mounts(experiment: Experiment, roots: StorageRoots) -> tuple[Mount, ...]:
    """Return the folders that a companion reads, and nothing else. A volume is mounted whole, as for every job."""
    if isinstance(roots.output, Volume):
        return (Mount(roots.output.name, OUTPUTS, read_only=True, volume=roots.output),)
    return tuple(Mount(f"{roots.output}/{below}", f"{OUTPUTS}/{below}", read_only=True) for below in experiment.reads)


def output_folder(experiment: Experiment) -> PurePosixPath:
    """Return the folder of an experiment below the output root: `<user>/<project>/[<set>/]<experiment>`."""
    parts = [experiment.owner.user, experiment.project, str(experiment.number)]
    if experiment.sub is not None:
        parts.append(str(experiment.sub))
    return PurePosixPath(*parts)


def find_planned_job(experiment: Experiment, name: JobName) -> PlannedJob:
    """Return the plan of one job.

    Raises:
        LookupError: the plan has no such job.
    """
    for planned in experiment.plan.jobs:
        if planned.name == name:
            return planned
    raise LookupError(f"experiment {experiment.id} has no job {name}")


def _own_variables(bound: BoundJob) -> dict[str, str]:
    experiment = bound.experiment
    job = bound.job
    folders = bound.folders
    reader = {"RISEML_OUTPUTS": folders.output}
    own = reader if experiment.reads else {"OUTPUT_DIR": folders.output, "DATA_DIR": folders.data}
    own |= {
        "PROJECT_NAME": experiment.plan.project,
        "EXPERIMENT_ID": experiment_name(experiment.number, experiment.sub),
        "RISEML_JOB": job.name,
        "RISEML_ATTEMPT": str(job.attempt),
        "TINI_KILL_PROCESS_GROUP": "1",
    }
    own |= {f"RISEML_INPUT_{variable_name(name)}": path for name, path in folders.inputs}
    lineage = experiment.plan.lineage
    if lineage is not None:
        own |= {"RISEML_GENERATION": str(lineage.generation)}
        parent = {} if lineage.parent is None else {"RISEML_PARENT": experiment_name(experiment.number, lineage.parent)}
        own |= parent
    if bound.tokens is not None:
        own |= {"RISEML_HOST": bound.tokens[0], "RISEML_PORT": bound.tokens[1]}
    elif job.port is not None:
        own |= {"RISEML_HOST": job.address or "", "RISEML_PORT": str(job.port)}
    return own
