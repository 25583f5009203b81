"""The curves of experiments, grouped by a parameter or a tag: the answer of /results/curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from riseml import wire
from riseml.analysis.group_curves import CurvePart, describe_means, place_points
from riseml.analysis.numbers import read_number
from riseml.analysis.rows import ResultRow, list_metrics, list_parameters
from riseml.base.errors import NotFound, UsageError
from riseml.model import Caller
from riseml.server.api.views.results import ResultQuery, match_rows
from riseml.server.services import Stores
from riseml.spec.config.types import SEED
from riseml.store.metrics.metric_history import Bucket

_TAG = "tag"
_POINT = "point"  # all parameters but the seed
_EXACT = "parameters."  # begins the name of a parameter that could mean something else
_MOST_GROUPS = 50
_MOST_RUNS = 1000
_MOST_NAMES = 20  # parameters that a hint names


def read_curve_groups(
    query: ResultQuery, metric: str, by: str, caller: Caller, stores: Stores, moment: datetime
) -> wire.GroupCurveList:
    """Return the mean curve of each group of experiments, in the order of what they are grouped by.

    Args:
        query: which experiments.
        metric: its name.
        by: a parameter, `tag`, or `point` for all parameters but the seed.
        caller: the user of the request.
        stores: of the server.
        moment: now.

    Raises:
        NotFound: there is no such experiment, or none has reported the metric.
        UsageError: the request is wrong, or nothing can be grouped so.
    """
    matched = match_rows(query, caller, stores, moment)
    read = _find_reader(by, list_parameters(matched.rows))
    rows = [row for row in matched.rows if metric in row.metrics][:_MOST_RUNS]
    if not rows:
        names = ", ".join(list_metrics(matched.rows)[:_MOST_NAMES])
        raise NotFound(f"no metric {metric!r} was reported", f"there are {names}" if names else "none was reported yet")
    groups = _group(rows, read)
    drawn = dict(sorted(groups.items(), key=lambda pair: _order(pair[0]))[:_MOST_GROUPS])
    keys = {row.name: matched.sources.outcomes[row.name].id for some in drawn.values() for row in some}
    histories = stores.metrics.read_histories(list(keys.values()), metric)
    parts = {name: _list_parts(histories.get(key, ())) for name, key in keys.items()}
    counted = any(step is None for some in parts.values() for step, _, _ in some)
    return {
        "metric": metric,
        "by": by,
        "x": "report" if counted else "step",
        "total": len(groups),
        "groups": [_show_group(label, some, parts, counted=counted) for label, some in drawn.items()],
    }


def _find_reader(by: str, parameters: Sequence[str]) -> Callable[[ResultRow], list[str]]:
    """Return what gives the labels of the groups that an experiment belongs to."""
    if by == _TAG:
        return lambda row: list(row.annotation.tags) or ["no tag"]
    if by == _POINT:
        return lambda row: [
            " ".join(f"{name}={text}" for name, text in row.parameters.items() if name != SEED) or "all"
        ]
    name = by if by in parameters else by.removeprefix(_EXACT)
    if name not in parameters:
        names = ", ".join(parameters[:_MOST_NAMES])
        hint = f"there are {names}; `tag` groups by tags" if names else "they have none; `tag` groups by tags"
        raise UsageError(f"these experiments have no parameter {name!r}", hint)
    return lambda row: [f"{name}={row.parameters[name]}" if name in row.parameters else f"no {name}"]


def _group(rows: Sequence[ResultRow], read: Callable[[ResultRow], list[str]]) -> dict[str, list[ResultRow]]:
    groups: dict[str, list[ResultRow]] = {}
    for row in sorted(rows, key=lambda row: row.number):
        for label in read(row):
            groups.setdefault(label, []).append(row)
    return groups


def _order(label: str) -> tuple[float, str]:
    """Return the key by which groups are sorted: numbers as numbers, before texts."""
    number = read_number(label.partition("=")[2])
    return (float("inf") if number is None else number, label)


def _list_parts(buckets: Sequence[Bucket]) -> list[CurvePart]:
    return [(bucket.last_step, bucket.mean, bucket.count) for bucket in buckets]


def _show_group(
    label: str, rows: Sequence[ResultRow], parts: Mapping[str, list[CurvePart]], *, counted: bool
) -> wire.GroupCurve:
    points = describe_means([place_points(parts[row.name], counted=counted) for row in rows])
    return {
        "label": label,
        "ids": [row.name for row in rows],
        "x": [point.x for point in points],
        "n": [point.n for point in points],
        "mean": [point.mean for point in points],
        "low": [point.low for point in points],
        "high": [point.high for point in points],
        "error": [point.error for point in points],
    }
