"""The routes of diagnoses: why an experiment makes no progress."""

from __future__ import annotations

import logging

from fastapi import APIRouter

from riseml import wire
from riseml.base.errors import NotFound
from riseml.base.names import experiment_name, parse_id
from riseml.control.visible_names import name_seen
from riseml.server.api.callers import CallerOf
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.views.named_experiments import check_changeable, find_details, find_single_experiment
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services

log = logging.getLogger(__name__)


def add_diagnosis_routes(router: APIRouter, services: Services) -> None:
    """Add GET /experiments/{name}/diagnosis, the last one, and POST, which makes one: each process of the jobs stops
    for some milliseconds."""

    @router.get("/experiments/{name}/diagnosis")
    def read_diagnosis(name: Name, caller: CallerOf) -> wire.DiagnosisView:
        experiment = find_single_experiment(parse_id(name), caller, services.stores)
        title = name_seen(caller, experiment)
        view = services.watchers.diagnoser.find_last(experiment)
        if view is None:
            raise NotFound(f"{title} has no diagnosis", f"`riseml diagnose {title}` makes one while it runs")
        return {**view, "id": title}

    @router.post("/experiments/{name}/diagnosis")
    def diagnose_experiment(name: Name, caller: CallerOf) -> wire.DiagnosisView:
        canonical_id = parse_id(name)
        check_changeable(caller, find_details(canonical_id, caller, services.stores))
        experiment = find_single_experiment(canonical_id, caller, services.stores)
        title = experiment_name(experiment.number, experiment.sub)
        write_line(log, LogLine(f"{title} a user asks why it makes no progress", experiment=title))
        return {**services.watchers.diagnoser.diagnose(experiment), "id": name_seen(caller, experiment)}
