"""Find the one running job, or the running experiment, that an ID names."""

from __future__ import annotations

from riseml.base.errors import Conflict, UsageError
from riseml.base.names import CanonicalId, parse_id
from riseml.base.states import TERMINAL
from riseml.model import Caller, Job
from riseml.server.access.job_access import JobConnector
from riseml.server.api.views.named_experiments import check_changeable, find_details, find_single_experiment
from riseml.server.services import Services, Stores


def find_connector(name: str, caller: Caller, services: Services) -> JobConnector:
    """Return the way into the one job that an ID names.

    Raises:
        RisemlError: it names none or several, or the job does not run.
    """
    canonical_id = parse_id(name)
    find_details(canonical_id, caller, services.stores)
    experiment = find_single_experiment(canonical_id, caller, services.stores)
    return JobConnector(services.hosts, experiment, find_single_job(canonical_id, experiment.gang))


def enter_job(name: str, caller: Caller, services: Services) -> JobConnector:
    """Return the way into a job of an experiment that the caller may change: what runs in it can do all that it can.

    Raises:
        RisemlError: as `find_connector`, or the caller only sees the experiment.
    """
    check_changeable(caller, find_details(parse_id(name), caller, services.stores))
    return find_connector(name, caller, services)


def find_single_job(canonical_id: CanonicalId, jobs: tuple[Job, ...]) -> Job:
    """Return the one job that an ID names.

    Raises:
        UsageError: it names several, or the build.
    """
    named = [job for job in jobs if canonical_id.names(job.name)]
    if len(named) == 1:
        return named[0]
    if not named:
        raise UsageError(f"{canonical_id} builds the environment and cannot be entered", "name another job")
    base = str(canonical_id).removesuffix(f".{canonical_id.job}")
    raise UsageError(
        f"{canonical_id} has several jobs", f"name one: {', '.join(f'{base}.{job.name}' for job in named[:20])}"
    )


def find_running(name: str, caller: Caller, stores: Stores) -> int:
    """Return the id of an experiment that has not ended.

    Raises:
        Conflict: it has ended.
    """
    experiment = find_single_experiment(parse_id(name), caller, stores)
    if experiment.state in TERMINAL:
        raise Conflict(f"{name} has ended ({experiment.state.value})", f"`riseml status {name}` says why")
    return experiment.id
