"""A chart: curves or points with their axes, ready to be drawn on a terminal or into a file. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from riseml.analysis.group_curves import place_points
from riseml.analysis.numbers import are_numbers, read_number
from riseml.base.records import dataclass
from riseml.cli.output.text import clean_text, format_parameters

if TYPE_CHECKING:
    from riseml import wire

BEST = " (best)"
"""The end of the label of the best series."""

_LEAST_PLAIN = 1e-4  # between these ends of a y axis, its numbers are short without an exponent
_MOST_PLAIN = 1e7
_Y_TICKS = 7
_DIGITS = (1, 2, 3, 4, 5)  # digits after the point of a number with an exponent
_WIDE = 50.0  # a positive axis whose ends differ by this factor is logarithmic


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """Points of one experiment, or of all of them."""

    label: str
    points: tuple[tuple[float, float], ...]  # finite numbers, in order
    is_best: bool = False  # True: marked, and drawn last so that no other series hides it
    band: tuple[tuple[float, float, float], ...] = ()  # x, low and high around the points; empty: no band

    @property
    def extent(self) -> list[tuple[float, float]]:
        """The points, and the edges of the band: what an axis has to hold."""
        return [*self.points, *((x, y) for x, low, high in self.band for y in (low, high))]


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn."""

    title: str
    x_title: str
    y_title: str
    series: tuple[ChartSeries, ...]
    joined: bool = True  # curves; False: points alone
    x_log: bool = False  # the x axis is logarithmic
    x_names: tuple[str, ...] = ()  # labels at 1, 2, ... of the x axis; empty: numbers
    note: str = ""  # what is not drawn; empty: everything is

    @property
    def drawn(self) -> list[tuple[int, ChartSeries]]:
        """The series in the order in which they are drawn, each with its place in `series`: the best one last."""
        return sorted(enumerate(self.series), key=lambda pair: (pair[1].is_best, -pair[0]))


def make_curves(
    metric: str, histories: Sequence[tuple[wire.ResultView, wire.MetricHistoryView]], best: str | None = None
) -> Chart:
    """Return the learning curves of experiments: the mean of each part of a history over its last step.

    Where no step was reported, the number of the value takes its place. `best` is the ID of the best experiment.
    """
    every = [bucket for _, history in histories for bucket in history["buckets"]]
    counted = not every or any(bucket["last_step"] is None for bucket in every)
    series = tuple(
        ChartSeries(
            _describe_experiment(result, [other for other, _ in histories])
            + (BEST if result["id"] == best and len(histories) > 1 else ""),
            list_points(history["buckets"], counted=counted),
            is_best=result["id"] == best,
        )
        for result, history in histories
    )
    return Chart(clean_text(metric), "report" if counted else "step", clean_text(metric), series)


def _describe_experiment(result: wire.ResultView, every: Sequence[wire.ResultView]) -> str:
    """Return an ID with the parameters in which the experiments differ: `144.1 lr=0.1`."""
    parameters = result["parameters"]
    differ = {
        name: text for name, text in parameters.items() if any(other["parameters"].get(name) != text for other in every)
    }
    return clean_text(f"{result['id']} {format_parameters(differ)}".strip())


def list_points(buckets: Sequence[wire.MetricBucket], *, counted: bool) -> tuple[tuple[float, float], ...]:
    """Return the mean of each part of a history over its last step, or over the number of its last value."""
    return place_points([(bucket["last_step"], bucket["mean"], bucket["count"]) for bucket in buckets], counted=counted)


def make_scatter(
    metric: str, parameter: str, points: Sequence[tuple[str, float]], best: tuple[str, tuple[str, float]] | None = None
) -> Chart:
    """Return the values of a metric over those of a parameter; a parameter with texts has them in a row, and so has one
    whose texts are one number in other digits, such as 2.1 and 2.10.

    Args:
        metric: its name.
        parameter: its name.
        points: the parameter as written and the metric, of each experiment.
        best: the ID of the best experiment, and its own.
    """
    numbers = {text: read_number(text) for text, _ in points}
    name = clean_text(parameter)
    title = f"{clean_text(metric)} over {name}"
    texts = [] if are_numbers(numbers) else sorted(numbers)
    places = {text: float(texts.index(text) + 1) if texts else number or 0.0 for text, number in numbers.items()}
    series: tuple[ChartSeries, ...] = (ChartSeries("", tuple(sorted((places[text], value) for text, value in points))),)
    if best is not None and best[1] in points and len(points) > 1:
        text, value = best[1]
        label = clean_text(f"{best[0]} {parameter}={text}{BEST}")
        series += (ChartSeries(label, ((places[text], value),), is_best=True),)
    if texts:
        names = tuple(clean_text(text) for text in texts)
        return Chart(title, name, clean_text(metric), series, joined=False, x_names=names)
    low = min(places.values())
    high = max(places.values())
    x_log = low > 0 and high / low >= _WIDE
    return Chart(title, name, clean_text(metric), series, joined=False, x_log=x_log)


def has_points(chart: Chart) -> bool:
    """Return True when there is something to draw."""
    return any(series.points for series in chart.series)


def list_x_ticks(chart: Chart, ends: tuple[float, float], most: int) -> list[tuple[float, str]]:
    """Return the positions and labels of the ticks on the x axis; a logarithmic axis is in powers of ten."""
    if chart.x_names:
        return [(float(at), name) for at, name in enumerate(chart.x_names, 1)]
    ticks = choose_ticks(*ends, most)
    return [(tick, f"{10**tick:.2g}" if chart.x_log else f"{tick:g}") for tick in ticks]


def list_y_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return the positions and labels of the ticks on the y axis, such as `1.0e+35`.

    Return nothing where the plain numbers are short, and where numbers with an exponent would be as long.
    """
    if _LEAST_PLAIN <= max(abs(low), abs(high)) < _MOST_PLAIN:
        return []
    shares = [at / (_Y_TICKS - 1) for at in range(_Y_TICKS)]
    ticks = [low * (1 - share) + high * share for share in shares]
    least = 1e-9 * max(abs(low), abs(high))  # a smaller tick cannot be told from 0
    for digits in _DIGITS:
        names = [f"{tick:.{digits}e}" if abs(tick) >= least else "0" for tick in ticks]
        if len(set(names)) == len(names):
            return list(zip(ticks, names, strict=True))
    return []


def find_ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the smallest and the largest value; equal ones are moved a little apart."""
    low = min(values)
    high = max(values)
    if low < high:
        return low, high
    space = abs(low) * 0.05 or 0.5
    return low - space, high + space


def choose_ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers within an axis, at most `most` of them.

    Example: `choose_ticks(0, 1, 6)` is `[0, 0.2, 0.4, 0.6, 0.8, 1]`.
    """
    rough = (high - low) / max(1, most - 1)
    exponent = math.floor(math.log10(rough))
    power = 10.0**exponent
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(index * step, 12 - exponent) for index in range(first, last + 1)]
