"""The routes of one experiment: its state, its environment, why it waits, and its kill."""

from __future__ import annotations

import logging
from typing import Annotated

from fastapi import APIRouter, Path

from riseml import wire
from riseml.base.errors import UsageError
from riseml.base.names import CanonicalId, parse_id
from riseml.base.states import TERMINAL, State
from riseml.control.explain import list_concerned_hosts
from riseml.control.observation import Observation
from riseml.server.api.request_log import describe_kill
from riseml.server.api.submissions.dry_run import show_tf_configs
from riseml.server.api.views.explain import describe_stuck_disks, show_activities, show_explanation
from riseml.server.api.views.job_environments import show_job_environments
from riseml.server.api.views.named_experiments import (
    find_details,
    find_single_experiment,
    show_changed_details,
    show_details,
)
from riseml.server.api.waiting import wait_for_hosts
from riseml.server.clock import now
from riseml.server.data.disk_keeper import CACHE
from riseml.server.log_line import write_line
from riseml.server.services import Services

log = logging.getLogger(__name__)

_MOST_NUMBER = 2**31 - 1  # the largest number of an experiment, which every database can store

_NOT_STARTED = frozenset(State) - TERMINAL - {State.RUNNING}

Name = Annotated[str, Path(max_length=200, description="a canonical ID: 4, 144.1, 4.worker, paul.4.ps.1")]


def add_experiment_routes(router: APIRouter, services: Services) -> None:
    """Add the routes of one experiment, and the kill."""

    @router.get("/experiments/{name}")
    def read_experiment(name: Name) -> wire.ExperimentView:
        canonical_id = parse_id(name)
        return show_details(find_details(canonical_id, services), canonical_id, services)

    @router.post("/experiments/{name}/kill")
    def kill_experiment(name: Name) -> wire.ExperimentView:
        canonical_id = parse_id(name)
        if canonical_id.job is not None:
            raise UsageError(
                f"{name} is a job, and a job cannot be killed alone",
                f"`riseml kill {canonical_id.number}` kills its experiment",
            )
        _request_kill(canonical_id, services)
        write_line(log, describe_kill(canonical_id))
        return show_changed_details(find_details(canonical_id, services), canonical_id, services)

    _add_inspection_routes(router, services)


def _request_kill(canonical_id: CanonicalId, services: Services) -> None:
    """Store that the user kills an experiment, or a set with its search, and wake both loops."""
    details = find_details(canonical_id, services)
    set_id = details[0].experiment.set_id
    is_running = False
    if set_id is not None and canonical_id.sub is None:
        # end the search first, so that it makes no trial after the members are listed
        is_running = services.searches.request_end(set_id)
        details = find_details(canonical_id, services)
    services.experiments.request_kill([detail.experiment.id for detail in details])
    if not is_running and all(detail.experiment.state in TERMINAL for detail in details):
        for detail in details:  # that wait for the last copy of their output; a kill of what runs gives no copy up
            services.saves.give_up(detail.experiment)
    services.wake.set()
    services.search_wake.set()


def _add_inspection_routes(router: APIRouter, services: Services) -> None:
    """Add the routes that inspect one experiment: the variables of its jobs, and why it waits."""

    @router.get("/experiments/{name}/tfconfig")
    def read_tf_configs(name: Name) -> wire.TfConfigs:
        canonical_id = parse_id(name)
        return show_tf_configs(find_single_experiment(canonical_id, services), canonical_id)

    @router.get("/experiments/{name}/environment")
    def read_job_environments(name: Name) -> wire.JobEnvironments:
        canonical_id = parse_id(name)
        return show_job_environments(find_single_experiment(canonical_id, services), canonical_id, services)

    @router.get("/experiments/{name}/explain")
    def explain_experiment(name: Name) -> wire.ExplanationView:
        experiment = find_single_experiment(parse_id(name), services)
        if services.passes.observation is None:
            wait_for_hosts(services)
        observation = services.passes.observation or Observation(now(), {})
        world = services.experiments.load_world()
        hosts = services.hosts
        explanation = show_explanation(world, observation, experiment, hosts.names, hosts.find_troubles())
        if experiment.state in _NOT_STARTED:
            places = [*list_concerned_hosts(experiment, observation), *([CACHE] if experiment.plan.data else [])]
            explanation["summary"] += describe_stuck_disks(services.disks.find_stuck(places))
        return {**explanation, "activities": show_activities(services.activities.list_activities(experiment))}
