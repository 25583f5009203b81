"""The routes: thin. A command writes what is wanted and pokes the loop; a question reads the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from riseml import wire
from riseml.control.observation import Observation
from riseml.control.rollup import cause_of
from riseml.errors import NotFound, UsageError
from riseml.faultpoints import Point, reach
from riseml.model import Experiment, Owner
from riseml.names import CanonicalId, parse_id
from riseml.server.api import log_stream
from riseml.server.api.clean_routes import add_clean_routes
from riseml.server.api.dry_run import show_plan, show_tf_configs
from riseml.server.api.explain import show_explanation
from riseml.server.api.failures import FAILURES
from riseml.server.api.pool_routes import add_pool_routes, show_hosts
from riseml.server.api.submit import Planned, check_room, check_text, plan_submission, to_store
from riseml.server.api.views import show_all, show_experiment, show_set, show_time
from riseml.server.clock import now
from riseml.server.pool.clean import Cleaner
from riseml.server.pool.monitor import Monitor
from riseml.server.reconcile.actor import Stores
from riseml.server.reconcile.loop import Loop, Parts
from riseml.settings import MOST_TAIL
from riseml.store.experiments import ExperimentDetail

Name = Annotated[str, Path(max_length=200, description="a canonical ID: 4, 144.1, 4.worker, paul.4.ps.1")]
Digest = Annotated[str, Path(max_length=64, description="the SHA-256 of the project's files, in hex")]
Submission = Annotated[wire.Submission, Body()]

_LAST_LINES = 10
_NO_BODY: dict[int | str, dict[str, Any]] = {code: {"model": None} for code in FAILURES}  # a HEAD is answered with none
_TAR_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_KNOWN: dict[int | str, dict[str, Any]] = {
    200: {"model": wire.ExperimentView, "description": "the same `key` was used before: this is what it made"}
}
_NDJSON: dict[int | str, dict[str, Any]] = {
    200: {"description": "one `Entry` a line", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
}
_LOOK = 10.0  # seconds that a submit waits for a first answer of the hosts


@dataclass(frozen=True, slots=True)
class Services:
    """What the routes use."""

    parts: Parts
    stores: Stores
    loop: Loop
    monitor: Monitor
    cleaner: Cleaner
    owner: Owner
    server: str
    version: str
    pid: int
    started_at: datetime
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _LogsAsked:
    """The query of a log."""

    follow: bool = True
    cursor: Annotated[str, Query(max_length=64_000)] = ""
    tail: Annotated[int | None, Query(ge=0, le=MOST_TAIL)] = None
    since: datetime | None = None
    batch: bool = False
    closed: bool = True


def make_router(services: Services) -> APIRouter:
    """Every route below /v1."""
    router = APIRouter(prefix="/v1", responses=FAILURES)
    _add_server_routes(router, services)
    _add_submit_routes(router, services)
    _add_experiment_routes(router, services)
    _add_look_routes(router, services)
    add_pool_routes(router, services.parts, services.loop)
    add_clean_routes(router, services.cleaner)
    return router


def _add_server_routes(router: APIRouter, services: Services) -> None:
    @router.get("/server")
    def read_server() -> wire.ServerView:
        return _show_server(services)

    @router.post("/server/stop")
    def stop_server() -> wire.ServerView:
        services.stop()
        return _show_server(services)

    @router.get("/system")
    def read_system() -> wire.SystemView:
        services.loop.look(_LOOK)
        return {"server": _show_server(services), "hosts": show_hosts(services.parts)}


def _add_submit_routes(router: APIRouter, services: Services) -> None:
    stores = services.stores

    @router.head("/snapshots/{digest}", responses=_NO_BODY, response_class=Response)
    def has_snapshot(digest: Digest) -> Response:
        return Response(status_code=200 if stores.snapshots.has_snapshot(digest) else 404)

    @router.put("/snapshots/{digest}", status_code=201, response_class=Response, openapi_extra=_TAR_BODY)
    async def put_snapshot(digest: Digest, request: Request) -> Response:
        await stores.snapshots.receive_archive(digest, request.stream(), services.owner)
        return Response(status_code=201)

    @router.post("/plans")
    def plan(submission: Submission) -> wire.PlanView:
        planned = plan_submission(submission, stores)
        return show_plan(submission, planned, services.parts, services.owner, now())

    @router.post("/experiments", status_code=201, responses=_KNOWN)
    def submit(submission: Submission, response: Response) -> wire.ExperimentView:
        planned = _plan(submission, services)
        reach(Point.REQUEST_READ)
        details, fresh = stores.experiments.add_experiments(to_store(submission, planned, services.owner), now())
        reach(Point.REQUEST_STORED)
        services.parts.wake.set()
        response.status_code = 201 if fresh else 200
        return _show(details, None, services)

    @router.post("/experiments/check", status_code=204, response_class=Response)
    def check(submission: Submission) -> Response:
        to_store(submission, _plan(submission, services), services.owner)
        return Response(status_code=204)


def _plan(submission: wire.Submission, services: Services) -> Planned:
    """What will run; it is refused when the hosts could never hold it."""
    planned = plan_submission(submission, services.stores)
    if not services.parts.pool.answers():
        services.loop.look(_LOOK)
    services.loop.follow_pool(_LOOK)
    check_room(planned, services.parts)
    return planned


def _add_experiment_routes(router: APIRouter, services: Services) -> None:
    @router.get("/experiments")
    def list_experiments(
        project: Annotated[str | None, Query(max_length=128)] = None,
        ended: Annotated[bool, Query(alias="all")] = False,  # noqa: FBT002  # a query parameter is named by its caller
        limit: Annotated[int | None, Query(ge=1, le=10_000)] = None,
    ) -> wire.ExperimentList:
        check_text(project)
        user = services.owner.user
        details = services.stores.experiments.list_experiments(user, ended=ended, project=project, limit=limit)
        return {"experiments": show_all(details, services.parts.hosts.roots)}

    @router.get("/experiments/{name}")
    def read_experiment(name: Name) -> wire.ExperimentView:
        wanted = parse_id(name)
        return _show(_find(wanted, services), wanted, services)

    @router.post("/experiments/{name}/kill")
    def kill_experiment(name: Name) -> wire.ExperimentView:
        wanted = parse_id(name)
        if wanted.job is not None:
            raise UsageError(
                f"{name} is a job, and a job cannot be killed alone",
                f"`riseml kill {wanted.number}` kills its experiment",
            )
        services.stores.experiments.request_kill([detail.experiment.id for detail in _find(wanted, services)])
        services.parts.wake.set()
        return _show(_find(wanted, services), wanted, services)


def _add_look_routes(router: APIRouter, services: Services) -> None:
    """What one experiment does: what it uses, says and waits for."""

    @router.get("/experiments/{name}/samples")
    def read_samples(name: Name) -> wire.Samples:
        wanted = parse_id(name)
        return services.monitor.sample([detail.experiment for detail in _find(wanted, services)], wanted)

    @router.get("/experiments/{name}/tfconfig")
    def read_tf_configs(name: Name) -> wire.TfConfigs:
        wanted = parse_id(name)
        return show_tf_configs(_find_one(wanted, services), wanted)

    @router.get("/experiments/{name}/explain")
    def explain_experiment(name: Name) -> wire.ExplanationView:
        experiment = _find_one(parse_id(name), services)
        if services.loop.seen is None:
            services.loop.look(_LOOK)
        seen = services.loop.seen or Observation(now(), {})
        world = services.stores.experiments.load_world()
        return show_explanation(world, seen, experiment, services.parts.pool)

    @router.get("/experiments/{name}/logs", response_class=StreamingResponse, responses=_NDJSON)
    def read_logs(
        name: Name,
        asked: Annotated[_LogsAsked, Depends()],
    ) -> StreamingResponse:
        wanted = parse_id(name)
        _check_moment(asked.since)
        ids = tuple(detail.experiment.id for detail in _find(wanted, services))
        positions = log_stream.parse_cursor(asked.cursor, len(ids))
        request = log_stream.Request(
            wanted, ids, asked.follow, positions, asked.tail, asked.since, asked.batch, asked.closed
        )
        entries = log_stream.stream(request, services.stores, services.parts.notifier)
        return StreamingResponse(entries, media_type="application/x-ndjson")


def _check_moment(since: datetime | None) -> None:
    """Refuse a moment that has no place in UTC: the first and the last day of the calendar, east and west of it."""
    try:
        show_time(since)
    except OverflowError:
        raise UsageError(f"since is {since}, which is beyond the calendar", "leave it out to read everything") from None


def _find(wanted: CanonicalId, services: Services) -> tuple[ExperimentDetail, ...]:
    """The experiment, or the members of the set, that an ID names; another user's does not exist for the caller."""
    if wanted.user is not None and wanted.user != services.owner.user:
        raise NotFound(f"there is no experiment {wanted}", "`riseml status -a` lists all of yours")
    details = services.stores.experiments.find_by_number(services.owner.user, wanted.number, wanted.sub)
    if wanted.job is not None:
        jobs = [job.name for detail in details for job in detail.experiment.jobs]
        if not any(wanted.names(job) for job in jobs):
            known = ", ".join(dict.fromkeys(jobs))
            raise NotFound(f"experiment {wanted.number} has no job {wanted.job}", f"its jobs are {known}")
    return details


def _find_one(wanted: CanonicalId, services: Services) -> Experiment:
    """The one experiment that an ID names.

    Raises:
        UsageError: it is a set.
    """
    details = _find(wanted, services)
    if details[0].experiment.set_id is not None and wanted.sub is None:
        raise UsageError(f"{wanted} is a set", f"name one of its experiments: {wanted.number}.1")
    return details[0].experiment


def _show(details: tuple[ExperimentDetail, ...], wanted: CanonicalId | None, services: Services) -> wire.ExperimentView:
    output = services.parts.hosts.roots
    first = details[0].experiment
    if first.set_id is not None and (wanted is None or wanted.sub is None):
        return show_set(details, output)
    return show_experiment(details[0], output, wanted, _last_lines(first, services))


def _last_lines(experiment: Experiment, services: Services) -> list[str]:
    """The last words of the job that brought about a bad end."""
    cause = cause_of(experiment)
    lines = [] if cause is None else services.stores.logs.read_last_lines(experiment.id, cause, _LAST_LINES)
    return [line.text.decode("utf-8", "replace") for line in lines]


def _show_server(services: Services) -> wire.ServerView:
    return {
        "version": services.version,
        "id": services.server,
        "pid": services.pid,
        "started_at": show_time(services.started_at) or "",
        "home": str(services.parts.settings.home),
        "executor": services.parts.hosts.name,
        "note": services.parts.hosts.notice,
        "engine": services.parts.settings.engine if services.parts.hosts.spec is None else "",
        "active": services.stores.experiments.count_open(),
    }
