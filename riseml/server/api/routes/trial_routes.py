"""The route that adds trials to a set whose points a search chooses."""

from __future__ import annotations

import logging
from typing import Annotated

from fastapi import APIRouter, Body

from riseml import wire
from riseml.base.errors import Refused, UsageError
from riseml.base.names import parse_id
from riseml.model import Environment, SearchRecord, TrialOutcome
from riseml.search.space import list_points
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.named_experiments import find_details, find_search, show_changed_details
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services
from riseml.spec.config.types import SearchMethod

log = logging.getLogger(__name__)


def add_trial_routes(router: APIRouter, services: Services) -> None:
    """Add POST /experiments/{name}/trials."""

    @router.post("/experiments/{name}/trials")
    def add_trials(name: Name, order: Annotated[wire.TrialOrder, Body()]) -> wire.ExperimentView:
        check_text(order)
        canonical_id = parse_id(name)
        record = find_search(canonical_id, services, "only a search makes further trials")
        first = find_details(canonical_id, services)[0].experiment
        _check_points(record)
        if first.snapshot and not services.snapshots.has_snapshot(first.snapshot):
            raise Refused(
                f"the project's files of set {record.number} are gone from the server",
                "run `riseml train` again: it sends them, and begins a new set",
            )
        variables = _choose_variables(record, order)
        services.searches.continue_search(record.id, order["trials"], variables, services.seals.seal)
        write_line(log, LogLine(f"{record.number} {order['trials']} trials added", experiment=str(record.number)))
        services.search_wake.set()
        return show_changed_details(find_details(canonical_id, services), canonical_id, services)


def _check_points(record: SearchRecord) -> None:
    """Refuse trials that a search cannot make.

    Raises:
        Refused: it tries a grid, which has an end, has tried every combination, or has too many failed trials.
    """
    if record.plan.search.method is SearchMethod.GRID:
        raise Refused(f"set {record.number} tries a grid, which has no further points", "use another search.method")
    limit = record.plan.search.max_failed
    failed = record.count(TrialOutcome.FAILED)
    if limit is not None and failed > limit:
        raise Refused(
            f"{failed} trials of set {record.number} have failed, and with `max_failed: {limit}` it makes no more",
            "raise `train.search.max_failed`, and run `riseml train` for a new set",
        )
    points = list_points(record.plan.parameters)
    if points is not None and {trial.point for trial in record.trials}.issuperset(points):
        raise Refused(
            f"set {record.number} has tried every combination of its parameters, and has no further points",
            "give the parameters more values, and run `riseml train` for a new set",
        )


def _choose_variables(record: SearchRecord, order: wire.TrialOrder) -> Environment:
    """Return the variables of the new trials. The caller's values come with the order: the server does not keep them.

    Raises:
        UsageError: one is missing.
    """
    sent = order["environment"]
    missing = [variable.name for variable in record.variables if variable.value is None and variable.name not in sent]
    if missing:
        raise UsageError(f"the trials of set {record.number} need {missing[0]}", f"export {missing[0]}=...")
    return tuple(
        (variable.name, sent[variable.name] if variable.value is None else variable.value)
        for variable in record.variables
    )
