"""The routes of measurements: samples, metrics, slow jobs, and `GET /metrics` for Prometheus."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse

from riseml import wire
from riseml.analysis.stragglers import StragglerWarning, find_stragglers
from riseml.analysis.trends import Trends
from riseml.base.errors import NotFound, UsageError
from riseml.base.names import CanonicalId, parse_id
from riseml.base.states import PLACED
from riseml.control.visible_names import name_seen
from riseml.model import Caller, Experiment, Job
from riseml.server.api.callers import CallerOf
from riseml.server.api.routes.experiment_routes import Name
from riseml.server.api.views.metric_views import show_history, show_summary
from riseml.server.api.views.named_experiments import find_details, find_single_experiment
from riseml.server.api.views.progress_views import find_job_progress, find_job_rates
from riseml.server.api.views.record_views import show_sample
from riseml.server.api.views.sample_views import show_job_samples
from riseml.server.clock import now
from riseml.server.services import Services, Stores, Watchers
from riseml.server.usage.gpu_readings import GpuScrapes
from riseml.store.metrics.metric_rows import TallyRow
from riseml.store.samples.sample_rows import Span

_LONGEST_STEP = 366 * 86400  # seconds
_STEPS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400, 604800, _LONGEST_STEP)
_USUAL_POINTS = 300  # points of a job when the client names no step
_MOST_POINTS = 200_000  # in one answer
_PLACED_NAMES = frozenset(state.value for state in PLACED)
_MOST_WATCHED = 32  # experiments whose samples are remembered
_PROMETHEUS_FORMAT = "text/plain; version=0.0.4; charset=utf-8"

_Jobs = Sequence[tuple[Experiment, Job]]


def add_sample_routes(router: APIRouter, services: Services) -> None:
    """Add /samples and /experiments/{name}/samples: what jobs use now, and what they have used."""

    @router.get("/experiments/{name}/samples")
    def read_samples(
        name: Name,
        caller: CallerOf,
        since: Annotated[datetime | None, Query(description="read what jobs have used; RFC 3339")] = None,
        until: Annotated[datetime | None, Query(description="RFC 3339; by default now, or the last end")] = None,
        step: Annotated[int | None, Query(ge=1, le=_LONGEST_STEP, description="seconds of each mean")] = None,
    ) -> wire.Samples | wire.SampleHistory:
        canonical_id = parse_id(name)
        experiments = [detail.experiment for detail in find_details(canonical_id, caller, services.stores)]
        if since is None and until is None and step is None:
            return _show_samples(experiments, canonical_id, services, caller)
        jobs = [
            (experiment, job) for experiment in experiments for job in experiment.gang if canonical_id.names(job.name)
        ]
        span = _choose_span(experiments, since, until)
        step = _choose_step(span, len(jobs)) if step is None else _check_step(span, len(jobs), step)
        return _show_history(jobs, span, step, services.watchers, caller)

    @router.get("/samples")
    def read_all_samples(caller: CallerOf) -> wire.Samples:
        details = services.stores.experiments.list_experiments(
            caller.user, ended=False, project=None, limit=None, caller=caller
        )
        running = [detail.experiment for detail in details if detail.experiment.ended_at is None]
        samples = _show_samples(running, None, services, caller)["samples"]
        return {"samples": [sample for sample in samples if sample["state"] in _PLACED_NAMES]}


def _show_samples(
    experiments: list[Experiment], canonical_id: CanonicalId | None, services: Services, caller: Caller
) -> wire.Samples:
    job_samples = services.watchers.monitor.sample_jobs(experiments, canonical_id)
    lines = services.loops.pump.count_lines()
    observation = services.loops.passes.observation
    samples = []
    for experiment, job, last in job_samples:
        node = None if observation is None else observation.find_node(experiment, job)
        sample = show_sample(experiment, job, last, lines.get(experiment.key_of(job)), node, caller)
        sample["progress"] = find_job_progress(experiment, job, services.watchers.progress)
        sample["rates"] = find_job_rates(experiment, job, services.watchers.progress)
        samples.append(sample)
    return {"samples": samples}


def _show_history(jobs: _Jobs, span: Span, step: int, watchers: Watchers, caller: Caller) -> wire.SampleHistory:
    histories = []
    for experiment, job in jobs:
        rows = watchers.samples.store.read_rows(experiment.id, job.name, span)
        if rows:
            histories.append(show_job_samples(experiment, job, rows, step, caller))
    since, until = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}" for at in (span.since, span.until))
    return {"since": since, "until": until, "step": step, "jobs": histories}


def _choose_span(experiments: Sequence[Experiment], since: datetime | None, until: datetime | None) -> Span:
    """Return the requested span: by default from the first submission to now, or to the last end.

    Raises:
        UsageError: it ends before it begins, or lies beyond the calendar.
    """
    created = _read_epoch_seconds(min(experiment.created_at for experiment in experiments))
    ends = [experiment.ended_at for experiment in experiments if experiment.ended_at is not None]
    end = until or (max(ends) if len(ends) == len(experiments) else now())
    first = max(created, created if since is None else _read_epoch_seconds(since))
    last = _read_epoch_seconds(end) + 1
    if last <= first and until is not None:
        raise UsageError("until is before since", "leave until out to read up to now")
    return Span(first, max(first + 1, last))


def _read_epoch_seconds(moment: datetime) -> int:
    """Return the seconds since 1970; a moment without a zone is UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        return min(max(int(aware.timestamp()), 0), 2**32 - 1)
    except (OverflowError, ValueError):
        raise UsageError(f"{moment} is beyond the calendar", "give a moment such as 2026-08-31T07:23:46Z") from None


def _choose_step(span: Span, jobs: int) -> int:
    """Return a step with which the answer stays readable."""
    points = max(1, min(_USUAL_POINTS, _MOST_POINTS // max(jobs, 1)))
    seconds = (span.until - span.since) / points
    return next((step for step in _STEPS if step >= seconds), _LONGEST_STEP)


def _check_step(span: Span, jobs: int, step: int) -> int:
    """Return the step.

    Raises:
        UsageError: the answer would be too long.
    """
    points = jobs * ((span.until - span.since) // step + 1)
    if points > _MOST_POINTS:
        raise UsageError(
            f"a step of {step} s makes {points:,} points of {jobs:,} jobs; an answer has at most {_MOST_POINTS:,}",
            "give a longer step, a later since, or the ID of one job",
        )
    return step


def _show_tally(name: str, tally: TallyRow | None) -> wire.ExperimentMetrics:
    return {
        "id": name,
        "metrics": [show_summary(summary) for summary in tally.summaries.values()] if tally else [],
        "dropped": tally.dropped if tally else 0,
        "slow": sorted(tally.slow) if tally else [],
    }


def add_metric_routes(router: APIRouter, stores: Stores) -> None:
    """Add /experiments/{name}/metrics, the values that jobs reported, and the history of a metric."""

    @router.get("/experiments/{name}/metrics")
    def read_metrics(name: Name, caller: CallerOf) -> wire.MetricsList:
        experiments = [detail.experiment for detail in find_details(parse_id(name), caller, stores)]
        tallies = stores.metrics.read_tallies([experiment.id for experiment in experiments])
        return {
            "experiments": [
                _show_tally(name_seen(caller, experiment), tallies.get(experiment.id)) for experiment in experiments
            ]
        }

    @router.get("/experiments/{name}/metrics/history")
    def read_history(
        name: Name,
        caller: CallerOf,
        metric: Annotated[str, Query(max_length=200, description="the name of a metric: loss")],
    ) -> wire.MetricHistoryView:
        experiment = find_single_experiment(parse_id(name), caller, stores)
        identity = name_seen(caller, experiment)
        summaries = stores.metrics.read_summaries([experiment.id]).get(experiment.id, {})
        if metric not in summaries:
            hint = f"its metrics are {', '.join(summaries)}" if summaries else "it has reported none so far"
            raise NotFound(f"experiment {identity} has no metric {metric!r}", hint)
        return show_history(identity, metric, stores.metrics.read_history(experiment.id, metric))


def add_straggler_routes(router: APIRouter, services: Services) -> None:
    """Add /experiments/{name}/stragglers: which jobs of an experiment slow the others down."""
    trends = SeenTrends()

    @router.get("/experiments/{name}/stragglers")
    def read_stragglers(name: Name, caller: CallerOf) -> wire.Stragglers:
        experiment = find_single_experiment(parse_id(name), caller, services.stores)
        lines = services.loops.pump.count_lines()
        keys = [(job, experiment.key_of(job)) for job in experiment.gang]
        samples = [
            show_sample(experiment, job, services.watchers.samples.find_last(key), lines.get(key), caller=caller)
            for job, key in keys
        ]
        for sample, (job, _) in zip(samples, keys, strict=True):
            sample["progress"] = find_job_progress(experiment, job, services.watchers.progress)
        warnings = trends.find_warnings(experiment.id, samples)
        return {
            "stragglers": [
                {"job": warning.job, "text": warning.text, "kind": warning.kind.value} for warning in warnings
            ]
        }


class SeenTrends:
    """The samples of earlier requests, by experiment. Several threads use it.

    A rate needs two samples. The server remembers the samples of earlier requests, as `riseml monitor` does in its own
    process. It measures no job more often for this: it uses the samples that it keeps anyway.

    Args:
        clock: seconds; never set back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._trends: OrderedDict[int, Trends] = OrderedDict()  # by experiment, the most recently requested one last

    def find_warnings(self, experiment: int, samples: Sequence[wire.SampleView]) -> list[StragglerWarning]:
        """Remember samples of an experiment's jobs, and return the warnings that follow from all remembered samples."""
        with self._lock:
            trends = self._trends.pop(experiment, None) or Trends()
            self._trends[experiment] = trends
            while len(self._trends) > _MOST_WATCHED:
                self._trends.popitem(last=False)
            trends.add_samples(samples, self._clock())
            return find_stragglers(samples, trends)


def add_prometheus_routes(router: APIRouter, services: Services) -> None:
    """Add /metrics, which is outside of /v1, because Prometheus looks for it there."""

    gpus = GpuScrapes(services.hosts.pool)

    @router.get("/metrics", response_class=PlainTextResponse)
    def read_metrics() -> PlainTextResponse:
        from riseml.server.api.views.prometheus_families import make_exposition

        return PlainTextResponse(make_exposition(services, gpus), media_type=_PROMETHEUS_FORMAT)
