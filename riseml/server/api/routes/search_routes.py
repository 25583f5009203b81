"""The route that changes a set which goes on: pause, resume, stop, and how many of its experiments run at once."""

from __future__ import annotations

import logging
from typing import Annotated

from fastapi import APIRouter, Body, Path

from riseml import wire
from riseml.base.errors import Refused, UsageError
from riseml.base.names import CanonicalId, parse_id
from riseml.base.states import TERMINAL, Wanted
from riseml.model import SearchPlan
from riseml.server.api.callers import CallerOf
from riseml.server.api.set_admission import find_set_admission
from riseml.server.api.views.named_experiments import find_details, show_changed_details
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services
from riseml.spec.config.types import SearchMethod
from riseml.store.experiments import ExperimentDetail
from riseml.store.searches import SetChange

_FORMER = {Wanted.STOP: "was stopped", Wanted.KILL: "was killed"}

log = logging.getLogger(__name__)


def add_search_routes(router: APIRouter, services: Services) -> None:
    """Add POST /experiments/{name}/search, which changes a set of experiments, with a search or without one."""

    @router.post("/experiments/{name}/search")
    def change_set(
        name: Annotated[str, Path(max_length=200, description="the canonical ID of a set: 144, paul.144")],
        caller: CallerOf,
        request: Annotated[wire.SetChangeRequest, Body()],
    ) -> wire.ExperimentView:
        canonical_id = parse_id(name)
        details = find_details(canonical_id, caller, services.stores)
        set_id = _find_set(canonical_id, details)
        change = SetChange(request["paused"], request["concurrency"], request["stop"])
        if not _has_ended(set_id, details, services) or not change.stop:
            _check_change(set_id, details, change, services)
            admit = find_set_admission(details[0].experiment, services, adds=False)
            services.stores.searches.change_set(set_id, change, admit)
            number = details[0].experiment.number
            write_line(log, LogLine(f"{number} {_describe_change(change)}", experiment=str(number)))
            services.loops.wake.set()
            services.loops.search_wake.set()
            for detail in details:
                services.loops.notifier.publish_records(detail.experiment.id)
        return show_changed_details(find_details(canonical_id, caller, services.stores), canonical_id, services, caller)


def _find_set(canonical_id: CanonicalId, details: tuple[ExperimentDetail, ...]) -> int:
    """Return the key of the set that an ID names.

    Raises:
        UsageError: it is a single experiment, a member of a set, or a job.
    """
    set_id = details[0].experiment.set_id
    if set_id is None:
        raise UsageError(
            f"{canonical_id} is not a set: it runs as one experiment",
            f"`riseml kill {canonical_id.number}` ends it; a list in train.parameters makes a set",
        )
    if canonical_id.sub is not None:
        raise UsageError(
            f"{canonical_id} is a member of set {canonical_id.number}, and only a whole set is paused or stopped",
            f"name the set, {canonical_id.number}; `riseml kill {canonical_id}` ends this one",
        )
    return set_id


def _has_ended(set_id: int, details: tuple[ExperimentDetail, ...], services: Services) -> bool:
    """Return True when nothing of a set runs, and nothing further follows."""
    is_over = all(detail.experiment.state in TERMINAL for detail in details)
    return is_over and not services.stores.searches.goes_on(set_id)


def _check_change(set_id: int, details: tuple[ExperimentDetail, ...], change: SetChange, services: Services) -> None:
    """Refuse a change that can have no effect any more.

    Raises:
        Refused: the set has ended, was stopped or was killed.
    """
    number = details[0].experiment.number
    intent = services.stores.searches.load_wanted(set_id)
    more = suggest_more(number, services.stores.searches.load_plans([set_id]).get(set_id))
    if _has_ended(set_id, details, services):
        raise Refused(f"set {number} has ended", more)
    if intent in _FORMER and not change.stop:
        raise Refused(f"set {number} {_FORMER[intent]}, and starts nothing more", more)


def suggest_more(number: int, plan: SearchPlan | None) -> str:
    """Return how a set gets further experiments. `plan`: None for a set without a search."""
    if plan is None or plan.search.method is SearchMethod.GRID:
        return "`riseml train` begins a new set"
    return f"`riseml train {number} --trials 20` adds 20 trials"


def _describe_change(change: SetChange) -> str:
    """Return what a user has changed, for the log: `paused, concurrency 4`."""
    parts = [] if change.paused is None else ["paused" if change.paused else "resumed"]
    parts += [] if change.concurrency is None else [f"concurrency {change.concurrency}"]
    return ", ".join([*parts, *(["stopped: nothing further starts"] if change.stop else [])]) or "unchanged"
