"""The text of a gang's sbatch script, and the options of its steps. Pure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator

from riseml.base.records import dataclass
from riseml.executors.slurm.shape import GangShape, RoleNeed, ShapeKind
from riseml.spec.pool.types import SlurmSpec

_IMMEDIATE = 60  # seconds after which a step without room fails, instead of waiting forever
_WARNING = 60  # seconds before the time limit at which Slurm warns the supervisor
_BUILD_MEMORY = 2048  # MiB of a job that makes an environment
_MARGIN = 5  # minutes that a job may last beyond max_duration: its start and its end take time, too


@dataclass(frozen=True, slots=True)
class JobScriptRequest:
    """The content of one sbatch."""

    name: str  # name of the Slurm job, by which it is found again
    title: str  # for people, as the comment of the job: `paul.4`
    folder: str  # folder of the gang, as every node sees it
    shape: GangShape
    settings: SlurmSpec
    max_duration: float | None = None  # seconds; None: no limit of the user's


def make_job_name(server: str, experiment: int, attempt: int) -> str:
    """Return the name of the Slurm job of one attempt: `riseml-5e7a5e7a5e7a-4-1`."""
    return f"riseml-{server[:12]}-{experiment}-{attempt}"


def make_script(request: JobScriptRequest) -> str:
    """Return the script that sbatch reads from standard input."""
    parts = ["#!/bin/sh"]
    for index, roles in enumerate(request.shape.components):
        if index:
            parts.append("#SBATCH hetjob")
        else:
            parts += [f"#SBATCH {option}" for option in _list_job_options(request)]
        parts += [f"#SBATCH {option}" for option in _list_size_options(request.shape.kind, roles)]
        parts += [f"#SBATCH {option}" for option in _list_place_options(request.settings)]
    parts += request.settings.setup
    supervisor = f"{request.folder}/gang_supervisor.py"
    python = f"{shlex.quote(request.settings.python)} -S"  # without site-packages: it starts sooner
    parts.append(f"exec {python} {shlex.quote(supervisor)} {shlex.quote(request.folder)}")
    return "\n".join(parts) + "\n"


def list_site_options(settings: SlurmSpec) -> list[str]:
    """Return the options of sbatch that come from the settings, for every gang."""
    minutes = _find_minutes(settings.time_limit, None)
    time = [] if minutes is None else [f"--time={minutes}"]
    return [*_list_account_options(settings), *_list_place_options(settings), *time]


def make_build_script(name: str, folder: str, settings: SlurmSpec) -> str:
    """Return the script of a job that makes an environment.

    Args:
        name: of the Slurm job, by which it is found again.
        folder: of the build, as every node sees it.
        settings: what the user adds to each job.
    """
    options = [f"--job-name={name}", f"--output={folder}/log", "--open-mode=append", "--no-requeue", "--export=NONE"]
    options += [f"--chdir={folder}", "--nodes=1", "--ntasks=1", "--cpus-per-task=1", f"--mem={_BUILD_MEMORY}M"]
    options += list_site_options(settings)
    parts = ["#!/bin/sh", *(f"#SBATCH {option}" for option in options), *settings.setup]
    builder = f"{folder}/environment_builder.py"
    parts.append(f"exec {shlex.quote(settings.python)} {shlex.quote(builder)} {shlex.quote(folder)}")
    return "\n".join(parts) + "\n"


def make_step_options(shape: GangShape, role: RoleNeed, settings: SlurmSpec) -> list[str]:
    """Return the options of srun for one role: exactly its share, and no wait for the steps of other roles."""
    options = [f"--job-name={role.name}", "--nodes=1", "--ntasks=1", f"--cpus-per-task={role.cpus}", "--exact"]
    options += [f"--mem={role.mem}M", f"--gres=gpu:{role.gpus}" if role.gpus else "--gres=none"]
    options += [f"--immediate={_IMMEDIATE}", "--export=ALL", "--kill-on-bad-exit=0"]
    if shape.kind is ShapeKind.COMPONENTS:
        index = next(at for at, roles in enumerate(shape.components) if role in roles)
        options.append(f"--het-group={index}")
    return [*options, *settings.step_options]


def _list_job_options(request: JobScriptRequest) -> Iterator[str]:
    settings = request.settings
    yield f"--job-name={request.name}"
    yield f"--comment={_clean(request.title)}"
    yield f"--output={request.folder}/batch.log"
    yield "--open-mode=append"
    yield "--no-requeue"  # attempts are counted by the server
    yield "--export=NONE"  # not the server's environment, but that of a login on the node, which takes a moment
    yield f"--signal=B:USR1@{_WARNING}"
    yield f"--chdir={request.folder}"
    minutes = _find_minutes(settings.time_limit, request.max_duration)
    if minutes is not None:
        yield f"--time={minutes}"
    yield from _list_account_options(settings)


def _list_size_options(kind: ShapeKind, roles: tuple[RoleNeed, ...]) -> Iterator[str]:
    if kind is ShapeKind.ONE_NODE:
        gpus = sum(role.gpus for role in roles)
        yield "--nodes=1"
        yield "--ntasks=1"
        yield f"--cpus-per-task={sum(role.cpus for role in roles)}"
        yield f"--mem={sum(role.mem for role in roles)}M"
        if gpus:
            yield f"--gres=gpu:{gpus}"
        return
    cpus = max(role.cpus for role in roles)
    gpus = max(role.gpus for role in roles)
    yield f"--ntasks={len(roles)}"
    yield f"--cpus-per-task={cpus}"
    yield f"--mem-per-cpu={math.ceil(max(role.mem for role in roles) / cpus)}M"
    if gpus:
        yield f"--gpus-per-task={gpus}"


def _list_account_options(settings: SlurmSpec) -> Iterator[str]:
    if settings.qos:
        yield f"--qos={settings.qos}"
    if settings.account:
        yield f"--account={settings.account}"
    if settings.reservation:
        yield f"--reservation={settings.reservation}"


def _list_place_options(settings: SlurmSpec) -> Iterator[str]:
    if settings.partition:
        yield f"--partition={settings.partition}"
    if settings.constraint:
        yield f"--constraint={settings.constraint}"
    yield from settings.options


def _find_minutes(limit: float | None, max_duration: float | None) -> int | None:
    """Return the time limit in minutes: the site's setting, or less when the experiment may not last so long."""
    own = None if max_duration is None else math.ceil(max_duration / 60) + _MARGIN
    site_limit = None if limit is None else max(1, math.ceil(limit / 60))
    return min((minutes for minutes in (own, site_limit) if minutes is not None), default=None)


def _clean(text: str) -> str:
    """Return a text that stays one word of an #SBATCH line."""
    return re.sub(r"[^A-Za-z0-9._@-]", "_", text)[:200]
