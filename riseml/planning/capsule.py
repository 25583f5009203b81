"""The capsule of an experiment: everything that another run of it needs, from its record and from the server.

A capsule also holds each job as it would run in a network of its own (`CapsuleLaunch`), so that `riseml export` writes
files for other systems from the capsule alone.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Literal

from riseml import wire
from riseml.base.annotations import NO_ANNOTATION, Annotation
from riseml.base.names import experiment_name, hostname, show_framework
from riseml.base.records import dataclass
from riseml.base.states import SENTENCES, TERMINAL, JobDuty
from riseml.model import Experiment, Image, Job
from riseml.planning.launch import (
    JOB_PORT,
    JobFolders,
    add_reports,
    bind_job,
    choose_shm_size,
    find_planned_job,
    job_command,
)
from riseml.planning.shown_variables import hide_values, list_variables
from riseml.spec.config.loader import check_config
from riseml.spec.config.resolved import hide_variables
from riseml.spec.config.types import Shell

PEER = ".peer.riseml"
"""The suffix after the name of a job that stands for its address in `CapsuleLaunch`."""

_PARTS: dict[JobDuty, Literal["decides", "helps", "serves", "watches"]] = {
    JobDuty.DECIDES: "decides",
    JobDuty.HELPS: "helps",
    JobDuty.SERVES: "serves",
    JobDuty.WATCHES: "watches",
}
# these variables matter only on a network that jobs share with their machine
_PLACED_VARIABLES = frozenset({"RISEML_HOST", "RISEML_PORT"})


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Facts about an experiment that the server knows and that its record lacks."""

    riseml: str  # version of the server
    output: str  # where the output is, for people
    folders: JobFolders  # as the jobs see them
    hosts: tuple[wire.CapsuleHost, ...] = ()
    data: wire.CapsuleData = field(default_factory=lambda: wire.CapsuleData(folder="", entries=None))
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # packages of environments, by reference
    has_code: bool = False  # the project's files are in the same folder as the capsule
    results: Mapping[str, wire.MetricView] = field(default_factory=dict)
    annotation: Annotation = NO_ANNOTATION


@dataclass(frozen=True, slots=True)
class ShownConfig:
    """What a capsule has of a riseml.yml: no values of variables."""

    text: str
    variables: wire.CapsuleVariables


@functools.lru_cache(maxsize=16)
def show_config(config: str) -> ShownConfig:
    """Return what a capsule has of a riseml.yml with the values of the command line. The experiments of a set share it,
    and reading it takes longer than all the rest of a capsule.
    """
    return ShownConfig(hide_variables(config), _list_names(config))


def make_capsule(experiment: Experiment, config: ShownConfig, around: Circumstances) -> wire.Capsule:
    """Return the capsule of an experiment as it is now.

    Args:
        experiment: its record.
        config: what it has of its riseml.yml.
        around: what the server knows and the record does not have.
    """
    plan = experiment.plan
    masked = hide_values(experiment)
    jobs = [_show_job(masked, job, around) for job in masked.gang]
    return {
        "version": 1,
        "riseml": around.riseml,
        "complete": experiment.state in TERMINAL,
        "experiment": experiment_name(experiment.number, experiment.sub),
        "user": experiment.owner.user,
        "project": experiment.project,
        "framework": show_framework(plan.framework),
        "rerun_of": plan.origin.rerun_of or None,
        "name": around.annotation.name,
        "tags": list(around.annotation.tags),
        "note": around.annotation.note,
        "config": config.text,
        "parameters": dict(plan.parameters),
        "seeds": _find_seeds(experiment, jobs),
        "code": _show_code(experiment, around),
        "environments": [_show_environment(experiment, image, around) for image in experiment.images],
        "variables": config.variables,
        "data": around.data,
        "output": around.output,
        "hosts": list(around.hosts),
        "jobs": jobs,
        "state": experiment.state.value,
        "reason": experiment.reason.value,
        "message": experiment.message or SENTENCES[experiment.reason],
        "results": dict(around.results),
        "times": _show_times(experiment),
    }


def write_capsule(capsule: wire.Capsule) -> str:
    """Return the text of capsule.json."""
    return json.dumps(capsule, indent=2, ensure_ascii=True) + "\n"


def _show_code(experiment: Experiment, around: Circumstances) -> wire.CapsuleCode:
    origin = experiment.plan.origin
    git: wire.GitState | None = {"revision": origin.revision, "clean": origin.clean} if origin.revision else None
    if git is not None and origin.missing:
        git["missing"] = list(origin.missing)
    return {"digest": experiment.snapshot, "included": around.has_code, "file": origin.file, "git": git}


def _show_environment(experiment: Experiment, image: Image, around: Circumstances) -> wire.CapsuleEnvironment:
    packages = around.packages.get(image.reference)
    return {
        "image": image.base,
        "digest": dict(experiment.resolved).get(image.base),
        "install": list(image.install),
        "shell": image.shell.value,
        "files": list(image.files),
        "packages": None if packages is None else list(packages),
    }


def _list_names(config: str) -> wire.CapsuleVariables:
    spec = check_config(config).spec
    variables = () if spec is None else spec.train.env
    return {
        "passed": [variable.name for variable in variables if variable.value is None],
        "written": [variable.name for variable in variables if variable.value is not None],
    }


def _show_times(experiment: Experiment) -> wire.CapsuleTimes:
    return {
        "created_at": _show_time(experiment.created_at),
        "placed_at": _show_time(experiment.placed_at),
        "started_at": _show_time(experiment.started_at),
        "ended_at": _show_time(experiment.ended_at),
    }


def _show_job(experiment: Experiment, job: Job, around: Circumstances) -> wire.CapsuleJob:
    planned = find_planned_job(experiment, job.name)
    bound = list_variables(bind_job(experiment, job, around.folders))
    text = bound.values.get("TF_CONFIG")
    return {
        "name": job.name,
        "environment": experiment.images.index(experiment.image_of(job.name)),
        "part": _PARTS[job.part],
        "host": job.host,
        "address": job.address,
        "attempt": job.attempt,
        "shell": _show_shell(job.shell),
        "state": job.state.value,
        "exit_code": job.exit_code,
        "started_at": _show_time(job.started_at),
        "ended_at": _show_time(job.ended_at),
        "cpus": job.resources.cpus,
        "mem_mib": job.resources.mem,
        "gpus": job.resources.gpus,
        "cpus_limit": planned.limits.cpus,
        "mem_limit_mib": planned.limits.mem,
        "shm_mib": choose_shm_size(experiment.plan, planned),
        "variables": bound.values,
        "hidden": bound.hidden,
        "tf_config": None if text is None else json.loads(text),
        "launch": _show_launch(experiment, job),
    }


def _show_shell(shell: Shell | None) -> Literal["bash", "sh"] | None:
    return "bash" if shell is Shell.BASH else "sh" if shell is Shell.SH else None


def _show_launch(experiment: Experiment, job: Job) -> wire.CapsuleLaunch:
    """Return a job as it would run in its own network. Names that cannot appear in a user's text stand for addresses.

    Each job has another port, so that they can also share a machine.
    """
    places = {
        planned.name: replace(planned, address=hostname(planned.name) + PEER, port=JOB_PORT + at, gpus=())
        for at, planned in enumerate(experiment.gang)
    }
    placed = replace(experiment, jobs=tuple(places.values()))
    bound = bind_job(placed, replace(places[job.name], attempt=1))
    values = list_variables(bound).values
    return {
        "hostname": hostname(job.name),
        "command": list(add_reports(bound, job_command(bound))),
        "variables": {name: value for name, value in values.items() if name not in _PLACED_VARIABLES},
    }


def _find_seeds(experiment: Experiment, jobs: list[wire.CapsuleJob]) -> dict[str, str]:
    pairs = [*experiment.plan.parameters, *(pair for job in jobs for pair in job["variables"].items())]
    return {name: value for name, value in pairs if "seed" in name.lower()}


def _show_time(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
