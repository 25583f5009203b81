"""Learning curves of points over their seeds: means with bands. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from riseml.analysis.group_curves import Points, average_curves
from riseml.analysis.seed_statistics import bootstrap_interval
from riseml.cli.output.chart import BEST, Chart, ChartSeries, list_points
from riseml.cli.output.text import clean_text, format_parameters

if TYPE_CHECKING:
    from riseml import wire

NOTE = "Lines: means over seeds. Bands: 95% intervals of the mean, by bootstrap"
NOTE_WITHOUT_BANDS = "Means over seeds; --svg and --png draw their 95% intervals as bands"

_MEANS = "Lines: means of the runs that have a value there"
_BAND_NOTES = {
    "range": "Bands: from the least to the largest value",
    "error": "Bands: one standard error of the mean",
}


def make_group_curves(
    metric: str, histories: Sequence[tuple[wire.GroupView, Sequence[wire.MetricHistoryView]]], parameters: Sequence[str]
) -> Chart:
    """Return the mean curve of each group, with its band where it has several runs.

    A mean is that of the runs that have a value there: `average_curves` says where. A point of one run has no band.

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
    band = tuple((x, *_find_band(values)) for x, values in columns) if len(curves) > 1 else ()
    return ChartSeries(clean_text(label), points, is_best=is_best, band=band)


def _find_band(values: Sequence[float]) -> tuple[float, float]:
    return bootstrap_interval(values) if len(values) > 1 else (values[0], values[0])


def make_mean_curves(curves: wire.GroupCurveList, band: str, most: int) -> Chart:
    """Return the mean curves of groups, as the server and the page have them.

    Args:
        curves: of the groups.
        band: around the means: `range` or `error`.
        most: groups that are drawn.
    """
    metric = clean_text(curves["metric"])
    series = tuple(_make_mean_series(group, band) for group in curves["groups"][:most])
    more = f". The first {most} of {curves['total']:,} groups" if curves["total"] > most else ""
    note = f"{_MEANS}. {_BAND_NOTES[band]}{more}"
    return Chart(metric, curves["x"], metric, series, note=note)


def describe_without_bands(note: str) -> str:
    """Return the note of a chart of means that is drawn without its bands."""
    for words in _BAND_NOTES.values():
        note = note.replace(f"{_MEANS}. {words}", "Means; --svg and --png draw bands")
    return note.replace(NOTE, NOTE_WITHOUT_BANDS)


def _make_mean_series(group: wire.GroupCurve, band: str) -> ChartSeries:
    points = tuple(zip(group["x"], group["mean"], strict=True))
    if band == "range":
        edges = zip(group["x"], group["low"], group["high"], strict=True)
    else:
        errors = [error or 0.0 for error in group["error"]]
        edges = zip(
            group["x"],
            [mean - error for mean, error in zip(group["mean"], errors, strict=True)],
            [mean + error for mean, error in zip(group["mean"], errors, strict=True)],
            strict=True,
        )
    fewest = min(group["n"], default=0)
    largest = max(group["n"], default=0)
    runs = str(largest) if fewest == largest else f"{fewest} to {largest}"
    has_band = largest > 1
    return ChartSeries(clean_text(f"{group['label']} (n = {runs})"), points, band=tuple(edges) if has_band else ())
