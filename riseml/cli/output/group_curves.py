"""Learning curves of points over their seeds: means with bands. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from riseml.analysis.seed_statistics import bootstrap_interval
from riseml.cli.output.chart import BEST, Chart, ChartSeries, list_points
from riseml.cli.output.text import clean_text, format_parameters

if TYPE_CHECKING:
    from riseml import wire

Points = Sequence[tuple[float, float]]
"""x and y in the order of x."""

NOTE = "Lines: means over seeds. Bands: 95% intervals of the mean, by bootstrap"
NOTE_WITHOUT_BANDS = "Means over seeds; --svg and --png draw their 95% intervals as bands"


def make_group_curves(
    metric: str, histories: Sequence[tuple[wire.GroupView, Sequence[wire.MetricHistoryView]]], parameters: Sequence[str]
) -> Chart:
    """Return the mean curve of each group, with its band where it has several runs.

    A mean is taken where all runs of a group have values: from the latest of their first steps to the earliest of their
    last ones, at the steps of the first run. Between two steps of its own a run is taken as a straight line.

    Args:
        metric: its name.
        histories: each group with the histories of its runs.
        parameters: names of those in which the groups differ.
    """
    buckets = [bucket for _, some in histories for history in some for bucket in history["buckets"]]
    counted = not buckets or any(bucket["last_step"] is None for bucket in buckets)
    series = tuple(
        _make_series(group, [list_points(history["buckets"], counted=counted) for history in some], parameters)
        for group, some in histories
    )
    return Chart(clean_text(metric), "report" if counted else "step", clean_text(metric), series, note=NOTE)


def _make_series(group: wire.GroupView, curves: Sequence[Points], parameters: Sequence[str]) -> ChartSeries:
    curves = [curve for curve in curves if curve]
    point = {name: text for name, text in group["parameters"].items() if name in parameters}
    is_best = group["rank"] == 1
    label = f"{format_parameters(point) or group['ids'][0]} (n = {len(curves)}){BEST if is_best else ''}"
    columns = average_curves(curves)
    points = tuple((x, fmean(values)) for x, values in columns)
    band = tuple((x, *bootstrap_interval(values)) for x, values in columns if len(values) > 1)
    return ChartSeries(clean_text(label), points, is_best=is_best, band=band)


def average_curves(curves: Sequence[Points]) -> list[tuple[float, list[float]]]:
    """Return the values of all curves at each x of the first one that all of them reach."""
    if not curves:
        return []
    first = max(curve[0][0] for curve in curves)
    last = min(curve[-1][0] for curve in curves)
    steps = [x for x, _ in curves[0] if first <= x <= last]
    return [(x, [_interpolate(curve, x) for curve in curves]) for x in dict.fromkeys(steps)]


def _interpolate(curve: Points, x: float) -> float:
    place = bisect.bisect_left(curve, x, key=lambda point: point[0])
    later = curve[place]
    if later[0] == x or place == 0:
        return later[1]
    earlier = curve[place - 1]
    share = (x - earlier[0]) / (later[0] - earlier[0])
    return earlier[1] + share * (later[1] - earlier[1])
