"""What users and projects have used since a time, in the shape of the HTTP API."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import field
from datetime import datetime

from riseml import wire
from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL
from riseml.model import Experiment, Plan
from riseml.server.api.views.record_views import show_time
from riseml.store.placements import PlacementRecord
from riseml.store.samples.sample_rows import AMOUNTS, SampleRow, Span

_HOUR = 3600.0
_MOST_READ = 1000  # placements whose samples are read for one answer, the newest
_GPU = AMOUNTS.index("gpu")

ReadMinutes = Callable[[int, JobName, Span], list[SampleRow]]
"""Returns the means of the minutes of a job, by the key of its experiment."""


@dataclass(slots=True)
class _Sums:
    experiments: set[int] = field(default_factory=set)
    gpu_seconds: float = 0.0
    used: float | None = None  # seconds; None: no load was measured
    core_seconds: float = 0.0
    waited: float = 0.0
    waiting: int = 0


def show_usage(
    by: wire.AccountKindName,
    times: tuple[datetime, datetime],
    placements: Iterable[PlacementRecord],
    waiting: Iterable[Experiment],
    measure_use: Callable[[PlacementRecord, Span], float | None],
) -> wire.UsageList:
    """Return what was used.

    Args:
        by: what each row is about.
        times: from when to when.
        placements: the times at which experiments had places, oldest first.
        waiting: the open experiments that the caller may see; those without a place wait.
        measure_use: returns the seconds for which the GPUs of a placement were in use; None: not known.
    """
    since, until = times
    sums: dict[str, _Sums] = {}
    records = list(placements)
    for index, record in enumerate(records):
        row = sums.setdefault(record.user if by == "user" else record.project, _Sums())
        span = _add_place(row, record, since, until)
        if record.span.gpus and index >= len(records) - _MOST_READ:
            used = measure_use(record, span)
            row.used = row.used if used is None else (row.used or 0.0) + used
    for experiment in waiting:
        if experiment.placed_at is None and experiment.state not in TERMINAL:
            row = sums.setdefault(experiment.owner.user if by == "user" else experiment.project, _Sums())
            row.experiments.add(experiment.id)
            row.waiting += 1
            begun = max(since, experiment.waits_since or experiment.created_at)
            row.waited += max(0.0, (until - begun).total_seconds())
    rows = [_show_row(name, row) for name, row in sums.items()]
    rows.sort(key=lambda row: (-row["gpu_hours"], -row["core_hours"], row["name"]))
    return {"by": by, "since": show_time(since) or "", "until": show_time(until) or "", "rows": rows}


def _add_place(row: _Sums, record: PlacementRecord, since: datetime, until: datetime) -> Span:
    """Count a placement, as far as it was between two times. Return when that was."""
    row.experiments.add(record.experiment)
    begun = max(since, record.span.begun_at)
    seconds = max(0.0, (min(until, record.span.ended_at or until) - begun).total_seconds())
    row.gpu_seconds += seconds * record.span.gpus
    row.core_seconds += seconds * record.span.cpus
    if record.span.begun_at >= since:
        row.waited += (record.span.begun_at - record.waited_since).total_seconds()
    return Span(int(begun.timestamp()), math.ceil(begun.timestamp() + seconds) + 1)


def _show_row(name: str, row: _Sums) -> wire.UsageRow:
    return {
        "name": name,
        "experiments": len(row.experiments),
        "gpu_hours": round(row.gpu_seconds / _HOUR, 4),
        "gpu_hours_used": None if row.used is None else round(min(row.used, row.gpu_seconds) / _HOUR, 4),
        "core_hours": round(row.core_seconds / _HOUR, 4),
        "waited": round(row.waited, 1),
        "waiting": row.waiting,
    }


def measure_gpu_use(plan: Plan, experiment: int, span: Span, read_minutes: ReadMinutes) -> float | None:
    """Return the seconds for which the GPUs of an experiment were in use in a span, as their mean load says.

    Returns:
        None when none of its jobs was measured there.
    """
    seconds = span.until - span.since
    shares: list[float] = []
    for job in plan.jobs:
        if job.resources.gpus:
            rows = read_minutes(experiment, job.name, span)
            loads = [row.amounts[_GPU] for row in rows if not math.isnan(row.amounts[_GPU])]
            if loads:
                shares.append(job.resources.gpus * sum(loads) / len(loads) / 100)
    return sum(shares) * seconds if shares else None
