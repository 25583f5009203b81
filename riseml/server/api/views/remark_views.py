"""What is probably wrong with an experiment that runs, from its metrics, its rate, and what its jobs use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from riseml import wire
from riseml.analysis.remarks import (
    WINDOW,
    Mean,
    Remark,
    RemarkKind,
    check_gpus,
    check_loss,
    check_memory,
    check_stalled,
    is_loss,
)
from riseml.base.names import JobName
from riseml.base.states import State
from riseml.model import Experiment, Job
from riseml.server.api.views.record_views import show_time
from riseml.server.services import Stores, Watchers
from riseml.spec.config.types import Goal, StalledRule
from riseml.store.metrics.metric_summary import MetricSummary
from riseml.store.samples.sample_rows import AMOUNTS, SampleRow, Span

_MOST_LOSSES = 10  # metrics that are checked
_MOST_JOBS = 16  # jobs whose samples are read
_MEM_USED = AMOUNTS.index("mem_used")
_MEM_TOTAL = AMOUNTS.index("mem_total")
_GPU = AMOUNTS.index("gpu")


def list_remarks(experiment: Experiment, watchers: Watchers, stores: Stores, moment: datetime) -> list[wire.RemarkView]:
    """Return what is probably wrong with an experiment; nothing while it does not run.

    Args:
        experiment: of which they are.
        watchers: know its samples, and how far its jobs are.
        stores: have its metrics.
        moment: now.
    """
    if experiment.state is not State.RUNNING:
        return []
    summaries = stores.metrics.read_summaries([experiment.id]).get(experiment.id, {})
    remarks = [_show_remark(None, remark) for remark in _check_losses(experiment, summaries, stores)]
    stalled = _check_stalled(experiment.plan.policy.on.stalled, summaries)
    remarks += [] if stalled is None else [_show_remark(None, stalled)]
    remarks += list(_list_stalls(experiment, watchers, moment))
    running = [job for job in experiment.gang if job.state is State.RUNNING]
    for job in running[:_MOST_JOBS]:
        remarks += [_show_remark(job.name, remark) for remark in _check_samples(experiment, job, watchers, moment)]
        slower = watchers.progress.check_rate(experiment.key_of(job))
        if slower is not None:
            remarks.append(_show_remark(job.name, slower, moment - timedelta(seconds=slower.since or 0.0)))
    return remarks


def _check_losses(experiment: Experiment, summaries: Mapping[str, MetricSummary], stores: Stores) -> Iterator[Remark]:
    for name in list(filter(is_loss, summaries))[:_MOST_LOSSES]:
        summary = summaries[name]
        history = [Mean(bucket.mean, bucket.minimum) for bucket in stores.metrics.read_history(experiment.id, name)]
        remark = check_loss(name, summary.last, summary.last_not_finite, summary.last_step, history)
        if remark is not None:
            yield remark


def _check_stalled(rule: StalledRule | None, summaries: Mapping[str, MetricSummary]) -> Remark | None:
    """Return a remark about the metric that should improve; None where its best or last value has no step."""
    summary = None if rule is None else summaries.get(rule.metric)
    if rule is None or summary is None or summary.last_step is None:
        return None
    is_largest = rule.goal is Goal.MAXIMIZE
    value = summary.maximum if is_largest else summary.minimum
    step = summary.maximum_step if is_largest else summary.minimum_step
    if value is None or step is None:
        return None
    return check_stalled(rule.metric, (value, step), summary.last_step, rule.patience)


def _list_stalls(experiment: Experiment, watchers: Watchers, moment: datetime) -> Iterator[wire.RemarkView]:
    for entry in watchers.stalls.list_stalls(experiment.id):
        since = moment - timedelta(seconds=entry.stall.silent)
        yield _show_remark(entry.stall.job, Remark(RemarkKind.STUCK, str(entry)), since)


def _check_samples(experiment: Experiment, job: Job, watchers: Watchers, moment: datetime) -> Iterator[Remark]:
    now = int(moment.timestamp())
    rows = watchers.samples.store.read_rows(experiment.id, job.name, Span(max(0, now - int(WINDOW)), now + 1))
    rows = [row for row in rows if row.attempt == job.attempt]
    used = _read_amounts(rows, _MEM_USED)
    limits = _read_amounts(rows, _MEM_TOTAL)
    checked = [check_memory(used, limits[-1][1]) if used and limits else None]
    if job.resources.gpus:
        checked.append(check_gpus(_read_amounts(rows, _GPU)))
    yield from (remark for remark in checked if remark is not None)


def _read_amounts(rows: Sequence[SampleRow], place: int) -> list[tuple[float, float]]:
    return [(float(row.at), row.amounts[place]) for row in rows if not math.isnan(row.amounts[place])]


def _show_remark(job: JobName | None, remark: Remark, since: datetime | None = None) -> wire.RemarkView:
    begun = None if since is None else show_time(since)
    if begun is None and remark.since is not None:
        begun = show_time(datetime.fromtimestamp(remark.since, UTC))
    return {"kind": remark.kind.value, "job": job, "text": remark.text, "since": begun}
