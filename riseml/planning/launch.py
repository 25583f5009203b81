"""A placed job and its peers make the launch that an executor carries out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath

from riseml.frameworks.registry import find_framework
from riseml.model import Environment, Experiment, Job, Launch, Mount, Plan, PlannedJob
from riseml.names import JobName, experiment_name, hostname
from riseml.planning.template import fill
from riseml.spec.config.parameters import OWN
from riseml.spec.pool.types import Volume
from riseml.spec.scalars.placeholders import variable_name

OUTPUT = "/output"
DATA = "/data"
PORT = 2222
_LEAST_SHM = 1024  # MiB


@dataclass(frozen=True, slots=True)
class Folders:
    """The output folder of an experiment, the data folder and the user's home, as somebody sees them."""

    output: str
    data: str
    home: str = "/tmp"


INSIDE = Folders(OUTPUT, DATA)
"""As a container sees them."""


@dataclass(frozen=True, slots=True)
class Roots:
    """Where all outputs and the data are: a folder of the hosts, or a volume. `home` is the user's home there."""

    output: str | Volume
    data: str | Volume
    home: str = "/tmp"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job runs: for which server, with which storage, and whether in a container."""

    server: str
    roots: Roots
    contained: bool = True


def folders_of(experiment: Experiment, place: Place) -> Folders:
    """The folders as the experiment's jobs find them. A volume is mounted whole, for it has one root for all."""
    below = str(output_folder(experiment))
    if not place.contained:
        return Folders(f"{place.roots.output}/{below}", str(place.roots.data), place.roots.home)
    if isinstance(place.roots.output, Volume):
        return Folders(f"{OUTPUT}/{below}", DATA)
    return INSIDE


def mounts_of(experiment: Experiment, roots: Roots) -> tuple[Mount, ...]:
    """What a container of the experiment sees of the storage."""
    if isinstance(roots.output, Volume):
        output = Mount(roots.output.name, OUTPUT, volume=roots.output)
    else:
        output = Mount(f"{roots.output}/{output_folder(experiment)}", OUTPUT)
    if isinstance(roots.data, Volume):
        return output, Mount(roots.data.name, DATA, read_only=True, volume=roots.data)
    return output, Mount(roots.data, DATA, read_only=True)


def make_launch(experiment: Experiment, job: Job, place: Place) -> Launch:
    """Everything that an executor needs to start `job`, whose experiment has a place."""
    planned = planned_job(experiment, job.name)
    name = experiment_name(experiment.number, experiment.sub)
    folders = folders_of(experiment, place)
    return Launch(
        key=experiment.key_of(job),
        server=place.server,
        title=f"{experiment.owner.user}.{name}.{job.name}",
        hostname=hostname(job.name),
        image=experiment.plan.image,
        command=command(experiment, planned, folders),
        environment=environment(experiment, job, folders),
        resources=planned.resources,
        limits=planned.limits,
        shm_size=shm_size(experiment.plan, planned),
        owner=experiment.owner,
        snapshot=experiment.snapshot,
        mounts=mounts_of(experiment, place.roots),
        network=experiment.network,
        address=job.address,
        hosts=tuple((hostname(peer.name), peer.address) for peer in experiment.gang if peer.address),
        gpus=job.gpus,
    )


def lines(experiment: Experiment, planned: PlannedJob, folders: Folders = INSIDE) -> tuple[str, ...]:
    """The lines of `run` with every placeholder filled, for one job."""
    binding = find_framework(experiment.plan.framework).bind(experiment.plan, planned.name, addresses(experiment))
    places = {"output_dir": folders.output, "data_dir": folders.data}
    values = {**binding.placeholders, **places, **dict(experiment.plan.parameters)}
    return tuple(fill(line, values) for line in planned.run)


def command(experiment: Experiment, planned: PlannedJob, folders: Folders = INSIDE) -> tuple[str, ...]:
    """The lines of `run` as one shell script that stops at the first failing line."""
    framework = find_framework(experiment.plan.framework)
    return ("/bin/sh", "-ec", framework.script(experiment.plan, planned.name, lines(experiment, planned, folders)))


def environment(experiment: Experiment, job: Job, folders: Folders = INSIDE) -> Environment:
    """The variables of one job. What stands further down wins: riseml's defaults, the user's `env`, the parameters (a
    point of the grid is what it says it is), riseml's own, the framework's.
    """
    plan = experiment.plan
    user = experiment.owner.user
    binding = find_framework(plan.framework).bind(plan, job.name, addresses(experiment))
    variables = {
        **{"PYTHONUNBUFFERED": "1", "HOME": folders.home, "USER": user, "LOGNAME": user},
        **{name: value for name, value in experiment.environment if not is_reserved(name)},
        **{variable_name(name): value for name, value in plan.parameters},
        **_own(experiment, job, folders),
        **binding.variables,
    }
    return tuple(variables.items())


def is_reserved(name: str) -> bool:
    """True for a variable that only riseml sets, or leaves unset: a job alone has no TF_CONFIG, whatever `env` says."""
    return name in OWN or name.startswith("RISEML_")


def tf_config(experiment: Experiment, job: Job) -> dict[str, object] | None:
    """The TF_CONFIG that a job finds in its environment, as a value; None when it finds none."""
    text = dict(environment(experiment, job)).get("TF_CONFIG")
    return None if text is None else json.loads(text)


def shm_size(plan: Plan, planned: PlannedJob) -> int:
    """The MiB of /dev/shm: half of the job's memory unless the file says it; an engine's own 64 MiB starve loaders."""
    return max(_LEAST_SHM, planned.resources.mem // 2) if plan.shm_size is None else plan.shm_size


def addresses(experiment: Experiment) -> dict[JobName, str]:
    """`host:port` of every job, as the others reach it; before placement as it will be on a network of its own."""
    found: dict[JobName, str] = {}
    for job in experiment.gang:
        host = job.address if job.port is not None and job.address is not None else hostname(job.name)
        found[job.name] = f"{host}:{job.port or PORT}"
    return found


def output_folder(experiment: Experiment) -> PurePosixPath:
    """The experiment's folder below the output root: `<user>/<project>/[<set>/]<experiment>` (RiseML's layout)."""
    parts = [experiment.owner.user, experiment.project, str(experiment.number)]
    if experiment.sub is not None:
        parts.append(str(experiment.sub))
    return PurePosixPath(*parts)


def planned_job(experiment: Experiment, name: JobName) -> PlannedJob:
    """The plan of one job.

    Raises:
        LookupError: the plan has no such job.
    """
    for planned in experiment.plan.jobs:
        if planned.name == name:
            return planned
    raise LookupError(f"experiment {experiment.id} has no job {name}")


def _own(experiment: Experiment, job: Job, folders: Folders) -> dict[str, str]:
    own = {
        "OUTPUT_DIR": folders.output,
        "DATA_DIR": folders.data,
        "PROJECT_NAME": experiment.plan.project,
        "EXPERIMENT_ID": experiment_name(experiment.number, experiment.sub),
        "RISEML_JOB": job.name,
        "RISEML_ATTEMPT": str(job.attempt),
        "TINI_KILL_PROCESS_GROUP": "1",
    }
    if job.port is not None:
        own |= {"RISEML_HOST": job.address or "", "RISEML_PORT": str(job.port)}
    return own
