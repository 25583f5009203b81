"""The routes of one experiment or set: its state, environment, names, trials, curves, why it waits, and its kill."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Body, Path, Query

from riseml import wire
from riseml.base.errors import Refused, UsageError
from riseml.base.names import CanonicalId, name_for_reader, parse_id
from riseml.base.states import TERMINAL, State
from riseml.control.explain import list_concerned_hosts
from riseml.control.observation import Observation
from riseml.control.search_steps import find_excess
from riseml.control.visible_names import name_seen
from riseml.model import Caller, Environment, SearchRecord, TrialOutcome
from riseml.planning.repetition import fold_record
from riseml.searches.importance import Importances, find_importances
from riseml.searches.propose import list_tried
from riseml.searches.space import list_points
from riseml.server.api.callers import CallerOf
from riseml.server.api.request_log import describe_kill
from riseml.server.api.set_admission import find_set_admission
from riseml.server.api.submissions.dry_run import show_tf_configs
from riseml.server.api.submissions.submit import check_text
from riseml.server.api.views.explain import describe_stuck_disks, show_activities, show_explanation
from riseml.server.api.views.job_environments import show_job_environments
from riseml.server.api.views.named_experiments import (
    find_details,
    find_search,
    find_single_experiment,
    show_changed_details,
    show_details,
)
from riseml.server.api.waiting import wait_for_hosts
from riseml.server.clock import now
from riseml.server.data.disk_reclaimer import CACHE
from riseml.server.log_line import LogLine, write_line
from riseml.server.services import Services, Stores
from riseml.spec.config.types import Goal, SearchMethod
from riseml.store.metrics.metric_history import Bucket, join_neighbours

_NOT_STARTED = frozenset(State) - TERMINAL - {State.RUNNING}
_MOST_CURVES = 1000  # curves of one answer
_MOST_CURVE_POINTS = 20_000  # points of all curves of an answer
_FEWEST_CURVE_POINTS = 2  # points of a curve
_MOST_NUMBERS = 50  # numbers of the newest experiments
_MOST_NAMES = 200  # names of one answer
_NAME_PREFIX = re.compile(r"(\d{0,9})(\.)?", re.ASCII)

Name = Annotated[str, Path(max_length=200, description="a canonical ID: 4, 144.1, 4.worker, paul.4.ps.1")]

log = logging.getLogger(__name__)


def add_experiment_routes(router: APIRouter, services: Services) -> None:
    """Add the routes of one experiment, and the kill."""

    @router.get("/experiments/{name}")
    def read_experiment(name: Name, caller: CallerOf) -> wire.ExperimentView:
        canonical_id = parse_id(name)
        return show_details(find_details(canonical_id, caller, services.stores), canonical_id, services, caller)

    @router.post("/experiments/{name}/kill")
    def kill_experiment(name: Name, caller: CallerOf) -> wire.ExperimentView:
        canonical_id = parse_id(name)
        if canonical_id.job is not None:
            raise UsageError(
                f"{name} is a job, and a job cannot be killed alone",
                f"`riseml kill {canonical_id.number}` kills its experiment",
            )
        _request_kill(canonical_id, caller, services)
        write_line(log, describe_kill(canonical_id))
        return show_changed_details(find_details(canonical_id, caller, services.stores), canonical_id, services, caller)

    _add_inspection_routes(router, services)


def _request_kill(canonical_id: CanonicalId, caller: Caller, services: Services) -> None:
    """Store that the user kills an experiment, or a set with its search, and wake both loops."""
    details = find_details(canonical_id, caller, services.stores)
    set_id = details[0].experiment.set_id
    is_running = False
    if set_id is not None and canonical_id.sub is None:
        # end the search first, so that it makes no trial after the members are listed
        is_running = services.stores.searches.request_end(set_id)
        details = find_details(canonical_id, caller, services.stores)
    services.stores.experiments.request_kill([detail.experiment.id for detail in details])
    if not is_running and all(detail.experiment.state in TERMINAL for detail in details):
        for detail in details:  # that wait for the last copy of their output; a kill of what runs gives no copy up
            services.data.saver.give_up(detail.experiment)
    services.loops.wake.set()
    services.loops.search_wake.set()


def _add_inspection_routes(router: APIRouter, services: Services) -> None:
    """Add the routes that inspect one experiment: the variables of its jobs, and why it waits."""

    @router.get("/experiments/{name}/tfconfig")
    def read_tf_configs(name: Name, caller: CallerOf) -> wire.TfConfigs:
        canonical_id = parse_id(name)
        return show_tf_configs(find_single_experiment(canonical_id, caller, services.stores), canonical_id, caller)

    @router.get("/experiments/{name}/environment")
    def read_job_environments(name: Name, caller: CallerOf) -> wire.JobEnvironments:
        canonical_id = parse_id(name)
        return show_job_environments(
            find_single_experiment(canonical_id, caller, services.stores), canonical_id, services.data, caller
        )

    @router.get("/experiments/{name}/explain")
    def explain_experiment(name: Name, caller: CallerOf) -> wire.ExplanationView:
        experiment = find_single_experiment(parse_id(name), caller, services.stores)
        if services.loops.passes.observation is None:
            wait_for_hosts(services.loops)
        observation = services.loops.passes.observation or Observation(now(), {})
        world = replace(services.stores.experiments.load_world(), reader=caller)
        hosts = services.hosts
        explanation = show_explanation(world, observation, experiment, hosts.names, hosts.find_troubles())
        if experiment.state in _NOT_STARTED:
            places = [*list_concerned_hosts(experiment, observation), *([CACHE] if experiment.plan.policy.data else [])]
            explanation["summary"] += describe_stuck_disks(services.data.disks.find_stuck(places))
        return {**explanation, "activities": show_activities(services.watchers.activities.list_activities(experiment))}


def add_trial_routes(router: APIRouter, services: Services) -> None:
    """Add POST /experiments/{name}/trials, which adds trials to a set whose points a search chooses."""

    @router.post("/experiments/{name}/trials")
    def add_trials(name: Name, caller: CallerOf, request: Annotated[wire.TrialRequest, Body()]) -> wire.ExperimentView:
        check_text(request)
        canonical_id = parse_id(name)
        record = fold_record(find_search(canonical_id, caller, services.stores, "only a search makes further trials"))
        first = find_details(canonical_id, caller, services.stores)[0].experiment
        _check_points(record)
        if first.snapshot and not services.stores.snapshots.has_snapshot(first.snapshot):
            raise Refused(
                f"the project's files of set {record.number} are gone from the server",
                "run `riseml train` again: it sends them, and begins a new set",
            )
        variables = _choose_variables(record, request)
        admit = find_set_admission(first, services, adds=True)
        seal = services.stores.seals.seal
        services.stores.searches.continue_search(record.id, request["trials"], variables, seal, admit)
        write_line(log, LogLine(f"{record.number} {request['trials']} trials added", experiment=str(record.number)))
        services.loops.search_wake.set()
        return show_changed_details(find_details(canonical_id, caller, services.stores), canonical_id, services, caller)


def _check_points(record: SearchRecord) -> None:
    """Refuse trials that a search cannot make.

    Raises:
        Refused: it tries a grid, which has an end, has tried every combination, or has too many failed trials.
    """
    if record.plan.search.method is SearchMethod.GRID:
        raise Refused(f"set {record.number} tries a grid, which has no further points", "use another search.method")
    limit = record.plan.search.max_failed
    failed = record.count(TrialOutcome.FAILED)
    if find_excess(record) is not None:
        setting = "without `max_failed`" if limit is None else f"with `max_failed: {limit}`"
        raise Refused(
            f"{failed} trials of set {record.number} have failed, and {setting} it makes no more",
            "raise `train.search.max_failed`, and run `riseml train` for a new set",
        )
    has_end = record.plan.search.pbt is None  # a population tries points again, with the files of a parent
    points = list_points(record.plan.parameters, record.plan.search.constraints) if has_end else None
    if points is not None and list_tried(record.plan, record.trials).issuperset(points):
        raise Refused(
            f"set {record.number} has tried every combination of its parameters, and has no further points",
            "give the parameters more values, and run `riseml train` for a new set",
        )


def _choose_variables(record: SearchRecord, request: wire.TrialRequest) -> Environment:
    """Return the variables of the new trials. The caller's values come with the request: the server does not keep them.

    Raises:
        UsageError: one is missing.
    """
    sent = request["environment"]
    missing = [variable.name for variable in record.variables if variable.is_passed and variable.name not in sent]
    if missing:
        raise UsageError(f"the trials of set {record.number} need {missing[0]}", f"export {missing[0]}=...")
    return tuple(
        (variable.name, sent[variable.name] if variable.value is None else variable.value)
        for variable in record.variables
        if not variable.secret
    )


def add_set_routes(router: APIRouter, stores: Stores) -> None:
    """Add /experiments/{name}/curves, the curves of a set's experiments, and /experiments/{name}/importance, the
    importance of its parameters.
    """

    @router.get("/experiments/{name}/curves")
    def read_curves(
        name: Name,
        caller: CallerOf,
        metric: Annotated[str, Query(max_length=200, description="the name of a metric: loss")],
    ) -> wire.CurveList:
        check_text([metric])
        members = [detail.experiment for detail in find_details(parse_id(name), caller, stores)]
        histories = stores.metrics.read_histories([member.id for member in members], metric)
        reported = [member for member in members if member.id in histories]
        latest = reported[-_MOST_CURVES:]
        most = max(_FEWEST_CURVE_POINTS, _MOST_CURVE_POINTS // max(1, len(latest)))
        curves = [_show_curve(name_seen(caller, member), histories[member.id], most) for member in latest]
        return {"metric": metric, "total": len(reported), "curves": curves}

    @router.get("/experiments/{name}/importance")
    def read_importance(name: Name, caller: CallerOf) -> wire.ImportanceView:
        record = fold_record(
            find_search(parse_id(name), caller, stores, "only a search has a metric that its parameters decide")
        )
        tables = [_show_importances(table) for table in find_importances(record.plan, record.trials)]
        return {"id": name_for_reader(caller.user, record.user, record.number), "tables": tables}


def _show_importances(table: Importances) -> wire.ImportanceTable:
    return {
        "metric": table.metric,
        "goal": "maximize" if table.goal is Goal.MAXIMIZE else "minimize",
        "trials": table.counted,
        "stopped": table.stopped,
        "parameters": [{"name": parameter, "importance": round(share, 4)} for parameter, share in table.parameters],
        "message": table.message,
        "when": table.when,
    }


def _show_curve(identity: str, buckets: Sequence[Bucket], most: int) -> wire.Curve:
    some = join_neighbours(buckets, most)
    return {
        "id": identity,
        "step": [bucket.last_step for bucket in some],
        "at": [bucket.last_at for bucket in some],
        "mean": [bucket.mean for bucket in some],
        "min": [bucket.minimum for bucket in some],
        "max": [bucket.maximum for bucket in some],
        "not_finite": [bucket.count - bucket.finite for bucket in some],
    }


def add_name_routes(router: APIRouter, stores: Stores) -> None:
    """Add /names, for the completion of IDs in shells: it answers within milliseconds, with names only."""

    @router.get("/names")
    def list_names(
        caller: CallerOf,
        prefix: Annotated[str, Query(max_length=100)] = "",
        running: bool = False,  # noqa: FBT001, FBT002  # a query parameter is named by its caller
    ) -> wire.NameList:
        names = () if caller.project is not None else _find_names(prefix, caller.user, stores, running=running)
        return {"names": list(islice((name for name in names if name.startswith(prefix)), _MOST_NAMES))}


def _find_names(prefix: str, user: str, stores: Stores, *, running: bool) -> Iterable[str]:
    """Return the names inside the experiment or set that the prefix names; else the newest experiments. For a prefix
    that begins no ID, return names and tags of users."""
    if not _NAME_PREFIX.fullmatch(prefix) and not prefix[:1].isdecimal() and not running:
        return stores.annotations.list_words(user, prefix, _MOST_NAMES)
    begun = _NAME_PREFIX.match(prefix)
    if begun is None or (begun.end() != len(prefix) and not begun[2]):
        return ()
    if begun[1] and begun[2]:
        return stores.names.list_names(user, int(begun[1]), running=running)
    return map(str, stores.names.list_numbers(user, begun[1], running=running, most=_MOST_NUMBERS))
