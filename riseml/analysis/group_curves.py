"""Learning curves of several runs as one: their mean at each step, its range and its standard error. Pure."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from statistics import fmean, stdev

from riseml.base.records import dataclass

Points = Sequence[tuple[float, float]]
"""x and y in the order of x."""

CurvePart = tuple[int | None, float | None, int]
"""A part of a history: its last step (None: reported without one), the mean of its values (None: none is finite), and
how many values it has."""

MOST_POINTS = 256
"""The most points of one mean curve."""


@dataclass(frozen=True, slots=True)
class MeanPoint:
    """The values of several runs at one step."""

    x: float
    n: int  # runs that have a value there
    mean: float
    low: float  # the least value
    high: float
    error: float | None  # standard error of the mean; None: one run has a value there


def place_points(parts: Sequence[CurvePart], *, counted: bool) -> tuple[tuple[float, float], ...]:
    """Return the mean of each part of a history over its last step; `counted`: over the number of its last value."""
    points = []
    total = 0
    for step, mean, count in parts:
        total += count
        if mean is not None:
            points.append((float(total if counted or step is None else step), mean))
    return tuple(points) if counted else tuple(sorted(points, key=lambda point: point[0]))  # a stable sort


def average_curves(curves: Sequence[Points]) -> list[tuple[float, list[float]]]:
    """Return the values of all curves that reach a step, at the steps of all of them.

    A curve reaches from its first step to its last one; between two of its own steps it is a straight line. Of more
    than `MOST_POINTS` steps, these are some at equal distances, the first and the last among them.
    """
    drawn = [curve for curve in curves if curve]
    steps = sorted({x for curve in drawn for x, _ in curve})
    if len(steps) > MOST_POINTS:
        last = len(steps) - 1
        steps = [steps[round(at * last / (MOST_POINTS - 1))] for at in range(MOST_POINTS)]
    return [(x, [_interpolate(curve, x) for curve in drawn if curve[0][0] <= x <= curve[-1][0]]) for x in steps]


def describe_means(curves: Sequence[Points]) -> list[MeanPoint]:
    """Return the mean curve of several runs, with how far they are apart."""
    return [
        MeanPoint(
            *(x, len(values), fmean(values), min(values), max(values)),
            stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None,
        )
        for x, values in average_curves(curves)
        if values
    ]


def _interpolate(curve: Points, x: float) -> float:
    place = bisect.bisect_left(curve, x, key=lambda point: point[0])
    later = curve[place]
    if later[0] == x or place == 0:
        return later[1]
    earlier = curve[place - 1]
    share = (x - earlier[0]) / (later[0] - earlier[0])
    return earlier[1] * (1 - share) + share * later[1]
