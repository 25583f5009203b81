"""How a training scales: time, throughput, speed-up and efficiency by the number of jobs that train."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from statistics import fmean

from riseml.analysis.ranking import SortKey
from riseml.analysis.rows import Columns, ResultRow
from riseml.base.errors import UsageError
from riseml.base.records import dataclass

RATES = (
    "examples_per_second",
    "samples_per_second",
    "images_per_second",
    "tokens_per_second",
    "steps_per_second",
    "throughput",
    "rate",
)
"""Metrics that are taken for a rate, where the user names none; the first one that was reported counts."""


@dataclass(frozen=True, slots=True)
class ScalingRow:
    """The experiments with one number of workers."""

    workers: int  # jobs that train
    runs: int  # experiments that have finished; the values are their means
    seconds: float
    rate: float | None  # the last value of the rate; None: it was not reported
    speed_up: float | None  # against the smallest number of workers; None: no rate
    efficiency: float | None  # efficiency of a worker, against one of the smallest number; 1 is perfect
    metrics: Mapping[str, float] = field(default_factory=dict)  # the others


@dataclass(frozen=True, slots=True)
class Scaling:
    """A whole table."""

    rate: str  # the metric that is used as the rate; empty: none, and the speed-up comes from the times
    rows: tuple[ScalingRow, ...]  # the smallest number of workers first
    left_out: int  # experiments that have not finished


def measure_scaling(rows: Sequence[ResultRow], columns: Columns, rate: str | None = None) -> Scaling:
    """Return how the experiments scale.

    With a rate the speed-up is its quotient. Without one it is that of the times, which is right only where every
    experiment does the same work.

    Raises:
        UsageError: no experiment has reported the rate.
    """
    if rate is not None and rate not in columns.metrics:
        metrics = ", ".join(sorted(columns.metrics)) or "none"
        raise UsageError(f"no metric {rate[:80]!r} was reported", f"there are {metrics}")
    chosen = rate or next((name for name in RATES if name in columns.metrics), "")
    finished = [row for row in rows if row.state == "FINISHED" and row.seconds is not None]
    groups: dict[int, list[ResultRow]] = {}
    for row in finished:
        groups.setdefault(row.workers, []).append(row)
    table: list[ScalingRow] = []
    for workers in sorted(groups):
        table.append(_measure_row(groups[workers], columns, chosen, table[0] if table else None))
    return Scaling(chosen, tuple(table), len(rows) - len(finished))


def sort_scaling(scaling: Scaling, keys: Sequence[SortKey]) -> Scaling:
    """Return the table in this order; without keys the smallest number of workers comes first.

    A key is `workers`, `runs`, `time`, the rate, `speed-up`, `efficiency` or a metric.

    Raises:
        UsageError: there is no such column.
    """
    rows = list(scaling.rows)
    for key in reversed(keys):  # sorting is stable, so that the first key is applied last
        read = find_scaling_reader(scaling, key.name)
        values = {row.workers: read(row) for row in rows}
        measured = [row for row in rows if values[row.workers] is not None]
        measured.sort(key=lambda row: values[row.workers] or 0.0, reverse=key.descending)
        rows = [*measured, *(row for row in rows if values[row.workers] is None)]
    return replace(scaling, rows=tuple(rows))


def list_scaling_names(scaling: Scaling) -> list[str]:
    """Return the names of the columns, each once: a metric with the name of another column is `metrics.time`."""
    own = ["workers", "runs", "time"]
    shares = ["speed-up", "efficiency"]
    rate = [_name_metric(scaling.rate)] if scaling.rate else []
    return [*own, *rate, *shares, *(_name_metric(metric) for metric in _list_metrics(scaling))]


def find_scaling_reader(scaling: Scaling, name: str) -> Callable[[ScalingRow], float | None]:
    """Return what reads a column; of a metric, its name or `metrics.NAME`.

    Raises:
        UsageError: there is no such column.
    """
    if name in _OWN:
        return _OWN[name]
    metrics = [*([scaling.rate] if scaling.rate else []), *_list_metrics(scaling)]
    written = {_name_metric(metric): metric for metric in metrics}
    metric = written.get(name, name)
    if scaling.rate and metric == scaling.rate:
        return lambda row: row.rate
    if metric in metrics:
        return lambda row: row.metrics.get(metric)
    raise UsageError(
        f"--scaling has no column {name[:80]!r} to sort by", f"there are {', '.join(list_scaling_names(scaling))}"
    )


def _list_metrics(scaling: Scaling) -> list[str]:
    return list(dict.fromkeys(name for row in scaling.rows for name in row.metrics))


def _name_metric(metric: str) -> str:
    return f"metrics.{metric}" if metric in _OWN or metric.startswith("metrics.") else metric


_OWN: Mapping[str, Callable[[ScalingRow], float | None]] = {
    "workers": lambda row: float(row.workers),
    "runs": lambda row: float(row.runs),
    "time": lambda row: row.seconds,
    "speed-up": lambda row: row.speed_up,
    "efficiency": lambda row: row.efficiency,
}
"""The columns that every table has."""


def _measure_row(rows: Sequence[ResultRow], columns: Columns, rate: str, first: ScalingRow | None) -> ScalingRow:
    workers = rows[0].workers
    seconds = fmean(row.seconds or 0.0 for row in rows)
    speed = _average_values(rows, columns, columns.name_metric(rate, "last")) if rate else None
    factor: float | None = 1.0
    if first is not None:
        new, old = (speed, first.rate) if rate else (_invert(seconds), _invert(first.seconds))
        factor = None if new is None or not old else new / old
    elif rate and speed is None:
        factor = None
    share = 1.0 if first is None else workers / first.workers
    differing = {
        name: mean
        for name in sorted(columns.metrics)  # a set has another order in each process
        if name != rate
        if (mean := _average_values(rows, columns, columns.name_metric(name))) is not None
    }
    efficiency = None if factor is None else factor / share
    return ScalingRow(workers, len(rows), seconds, speed, factor, efficiency, differing)


def _invert(seconds: float) -> float | None:
    return 1 / seconds if seconds else None


def _average_values(rows: Sequence[ResultRow], columns: Columns, name: str) -> float | None:
    read = columns.find_reader(name)
    values = [value for row in rows if isinstance(value := read(row), float | int) and math.isfinite(value)]
    return fmean(values) if values else None
