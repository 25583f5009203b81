"""The routes for the page of the pool: the queue, and the use of the hosts over the last hours."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query

from riseml import wire
from riseml.control.observation import Observation
from riseml.model import Experiment, Job
from riseml.server.api.views.explain import show_queue
from riseml.server.api.views.pool_usage import UsageSum
from riseml.server.api.views.pool_views import show_hosts
from riseml.server.api.waiting import wait_for_hosts
from riseml.server.clock import now
from riseml.server.services import Services
from riseml.store.experiment_pages import PageQuery, PageSort
from riseml.store.samples.sample_rows import Span

log = logging.getLogger(__name__)

_MOST_EXPLAINED = 100  # experiments of the queue
_MOST_HOURS = 7 * 24
_MINUTE = 60  # seconds
_HOUR = 3600  # seconds
_POINTS = 240  # points of a host, at most
_MOST_JOBS = 400  # the most jobs whose samples are read for one answer
_MOST_ENDED = 200  # how many of the last ended experiments are examined


def add_pool_history_routes(router: APIRouter, services: Services) -> None:
    """Add /pool/queue and /pool/usage."""

    @router.get("/pool/queue")
    def read_queue(limit: Annotated[int, Query(ge=1, le=_MOST_EXPLAINED)] = _MOST_EXPLAINED) -> wire.QueueView:
        if services.passes.observation is None:
            wait_for_hosts(services)
        observation = services.passes.observation or Observation(now(), {})
        return show_queue(services.experiments.load_world(), observation, services.hosts.names, limit)

    @router.get("/pool/usage")
    def read_usage(hours: Annotated[int, Query(ge=1, le=_MOST_HOURS)] = 6) -> wire.PoolUsage:
        end = int(now().timestamp()) + 1
        span = Span(end - hours * _HOUR, end)
        step = -(-hours * _HOUR // _POINTS // _MINUTE) * _MINUTE or _MINUTE
        usage = UsageSum(span, step)
        left_out = 0
        for count, (experiment, job) in enumerate(_list_jobs(services, datetime.fromtimestamp(span.since, UTC))):
            if count < _MOST_JOBS:
                _add_job(usage, experiment, job, services)
            else:
                left_out += 1
        since, until = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}" for at in (span.since, span.until))
        hosts = usage.show({host["name"]: host for host in show_hosts(services)})
        return {
            "since": since,
            "until": until,
            "step": step,
            "time": usage.moments,
            "hosts": hosts,
            "left_out": left_out,
        }


def _add_job(usage: UsageSum, experiment: Experiment, job: Job, services: Services) -> None:
    try:
        usage.add_job(job, services.samples.store.read_minutes(experiment.id, job.name, usage.span))
    except OSError as error:
        log.warning("the samples of experiment %s cannot be read: %s", experiment.number, error)


def _list_jobs(services: Services, since: datetime) -> Iterator[tuple[Experiment, Job]]:
    """Yield the jobs that may have run since a moment: those that run, then those that have ended, the last first."""
    user = services.info.owner.user
    running = services.experiments.list_experiments(user, ended=False, project=None, limit=None)
    query = PageQuery(PageSort.ENDED, limit=_MOST_ENDED)
    listed_ids: set[int] = set()
    for detail in (*running, *services.pages.read_page(user, query)):
        experiment = detail.experiment
        if (
            experiment.id in listed_ids
            or experiment.started_at is None
            or (experiment.ended_at is not None and experiment.ended_at < since)
        ):
            continue
        listed_ids.add(experiment.id)
        yield from ((experiment, job) for job in experiment.gang if job.host is not None)
