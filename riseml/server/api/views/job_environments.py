"""The variables that riseml sets in a job, without the values that only the job may see."""

from __future__ import annotations

from riseml import wire
from riseml.base.errors import RisemlError
from riseml.base.names import CanonicalId
from riseml.control.visible_names import name_seen
from riseml.model import Caller, Experiment, Job
from riseml.planning.launch import bind_job, job_folders
from riseml.planning.shown_variables import hide_values, list_variables
from riseml.server.services import DataServices


def show_job_environments(
    experiment: Experiment, canonical_id: CanonicalId, data: DataServices, caller: Caller
) -> wire.JobEnvironments:
    """Return what the jobs that an ID names find in their environments, from the stored plan and their places.

    The record's own variables are the user's `env`: their values are never read here.
    """
    masked = hide_values(experiment, data.capsules.list_env(experiment) if experiment.closed else ())
    jobs = [job for job in masked.gang if canonical_id.names(job.name)]
    name = name_seen(caller, experiment)
    return {"id": name, "jobs": {job.name: _show_job_environment(masked, job, data) for job in jobs}}


def _show_job_environment(experiment: Experiment, job: Job, data: DataServices) -> wire.JobEnvironment:
    folders = job_folders(experiment, data.fetcher.find_target(experiment, job.host))
    variables = list_variables(bind_job(experiment, job, folders))
    keys = [name for name in _list_keys(experiment, data) if name not in {*variables.values, *variables.hidden}]
    return {
        "variables": variables.values,
        "hidden": [*variables.hidden, *keys],
        "image": experiment.image_of(job.name).base,
    }


def _list_keys(experiment: Experiment, data: DataServices) -> list[str]:
    """Return the names of the variables that jobs get with `train.store`; none when the store is no longer there."""
    try:
        return [name for name, _ in data.fetcher.list_variables(experiment)]
    except RisemlError:
        return []
