"""The variables that riseml sets in a job, without the values that only the job may see."""

from __future__ import annotations

from dataclasses import replace

from riseml import wire
from riseml.model import Experiment, Job
from riseml.names import CanonicalId, experiment_name
from riseml.planning.launch import bind_job, job_folders, job_variables
from riseml.server.services import Services
from riseml.spec.scalars.secret_names import looks_secret

_HIDDEN = "\0"
"""Stands for a value that is not shown. A real value has no NUL character."""


def show_job_environments(experiment: Experiment, wanted: CanonicalId, services: Services) -> wire.JobEnvironments:
    """Return what the jobs that an ID names find in their environments, from the stored plan and their places.

    The record's own variables are the user's `env`: their values are never read here. Once the experiment is closed
    the record has none of them any more.
    """
    masked = replace(experiment, environment=tuple((name, _HIDDEN) for name, _ in experiment.environment))
    jobs = [job for job in masked.gang if wanted.names(job.name)]
    name = experiment_name(experiment.number, experiment.sub)
    return {"id": name, "jobs": {job.name: _show_job_environment(masked, job, services) for job in jobs}}


def _show_job_environment(experiment: Experiment, job: Job, services: Services) -> wire.JobEnvironment:
    folders = job_folders(experiment, services.hosts.find_target(job.host))
    variables = job_variables(bind_job(experiment, job, folders))
    hidden = [name for name, value in variables if value == _HIDDEN or looks_secret(name)]
    shown = {name: value for name, value in variables if name not in hidden}
    return {"variables": shown, "hidden": hidden, "image": experiment.image_of(job.name).base}
