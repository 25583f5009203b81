"""The route of stacks: what the processes of running jobs do now."""

from __future__ import annotations

import logging
from typing import Annotated

from fastapi import APIRouter, Body

from riseml import wire
from riseml.base.errors import Refused, UsageError
from riseml.base.names import experiment_name, parse_id
from riseml.server.access.job_stacks import StackRequest, read_stacks
from riseml.server.api.callers import CallerOf
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.views.named_experiments import check_changeable, find_details, find_single_experiment
from riseml.server.api.views.stack_views import show_stacks
from riseml.server.clock import now
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services

log = logging.getLogger(__name__)


def add_stack_routes(router: APIRouter, services: Services) -> None:
    """Add POST /experiments/{name}/stacks. It is a POST, because each process stops for some milliseconds."""

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
