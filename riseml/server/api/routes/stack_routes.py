"""The routes of stacks: what the processes of running jobs do now, and where a job is for some seconds."""

from __future__ import annotations

import logging
from typing import Annotated

from fastapi import APIRouter, Body

from riseml import wire
from riseml.base.errors import Refused, UsageError
from riseml.base.names import experiment_name, parse_id
from riseml.job_programs.process_facts import LONGEST_PROFILE
from riseml.server.access.job_stacks import ProfileRequest, StackRequest, read_stacks, record_profile
from riseml.server.api.callers import CallerOf
from riseml.server.api.job_connectors import find_single_job
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.views.named_experiments import check_changeable, find_details, find_single_experiment
from riseml.server.api.views.stack_views import show_profile, show_stacks
from riseml.server.clock import now
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services

_MOST_RATE = 1000  # samples in a second
_USUAL = ProfileRequest()

log = logging.getLogger(__name__)


def add_stack_routes(router: APIRouter, services: Services) -> None:
    """Add /experiments/{name}/stacks and /experiments/{name}/profile. Each process of a job stops for some milliseconds
    for a sample: so both are a POST.
    """

    @router.post("/experiments/{name}/stacks")
    def read_job_stacks(
        name: Name, caller: CallerOf, request: Annotated[wire.StacksRequest, Body()]
    ) -> wire.StacksView:
        canonical_id = parse_id(name)
        check_changeable(caller, find_details(canonical_id, caller, services.stores))
        experiment = find_single_experiment(canonical_id, caller, services.stores)
        choice = StackRequest(native=request.get("native", False), variables=request.get("variables", False))
        if choice.variables and experiment.owner.user != caller.user:
            raise Refused(
                f"the variables of {name} are for {experiment.owner.user} alone, who has submitted it",
                "leave --locals out to see its stacks",
            )
        jobs = [job for job in experiment.gang if canonical_id.names(job.name)]
        if not jobs:
            raise UsageError(f"{name} builds the environment, and has no stacks", "name another job")
        at = now()
        stacks = read_stacks(services.hosts, experiment, jobs, choice)
        title = experiment_name(experiment.number, experiment.sub)
        write_line(log, LogLine(f"{title} a user reads the stacks of {len(stacks)} jobs", experiment=title))
        return show_stacks(experiment, stacks, at, caller)

    @router.post("/experiments/{name}/profile")
    def profile_job(name: Name, caller: CallerOf, request: Annotated[wire.ProfileOptions, Body()]) -> wire.ProfileView:
        canonical_id = parse_id(name)
        check_changeable(caller, find_details(canonical_id, caller, services.stores))
        experiment = find_single_experiment(canonical_id, caller, services.stores)
        job = find_single_job(canonical_id, experiment.gang)
        choice = _read_profile_request(request)
        title = f"{experiment_name(experiment.number, experiment.sub)}.{job.name}"
        write_line(log, LogLine(f"{title} a user records where it is, for {choice.seconds} s", experiment=title))
        at = now()
        profile = record_profile(services.hosts, experiment, job, choice)
        return show_profile(title, profile, choice, at)


def _read_profile_request(request: wire.ProfileOptions) -> ProfileRequest:
    """Return how a job is recorded.

    Raises:
        UsageError: for too long, or too often.
    """
    choice = ProfileRequest(
        seconds=request.get("seconds", _USUAL.seconds),
        rate=request.get("rate", _USUAL.rate),
        native=request.get("native", False),
        idle=request.get("idle", False),
    )
    if not 1 <= choice.seconds <= LONGEST_PROFILE:
        raise UsageError(
            f"a job is recorded for 1 to {LONGEST_PROFILE} seconds, not for {choice.seconds}", "give another number"
        )
    if not 1 <= choice.rate <= _MOST_RATE:
        raise UsageError(
            f"a job is recorded 1 to {_MOST_RATE} times a second, not {choice.rate} times", "give another number"
        )
    return choice
