"""A chart as lines of a terminal, drawn by plotext. Pure, except for the one global figure of plotext."""

from __future__ import annotations

import math
import re
from typing import Any

from riseml.cli.output.chart import Chart, ChartSeries, find_ends, list_x_ticks, list_y_ticks
from riseml.cli.output.style import Style
from riseml.cli.output.widths import shorten_to_width

_USUAL_WIDTH = 80  # columns, where the output is not a terminal
_LEAST_WIDTH = 30
_MOST_WIDTH = 160
_HEIGHT = 20  # lines
_TICKS = 6  # on the x axis
_COLOURS = ("cyan", "orange", "green", "magenta", "blue", "red", "cyan+", "orange+", "green+", "magenta+")
_CODES = ("36", "33", "32", "35", "34", "31", "96", "93", "92", "95")
_BEST = "•"  # the marks of the best of several curves
_PLAIN_BEST = "*"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BEST_POINT = "◆"
_SIMPLE = str.maketrans("┌┐└┘─│┤┬├┴┼•◆", "++++-|||+++*#")


def draw_chart(chart: Chart, style: Style, *, unicode: bool = True) -> list[str]:
    """Return the lines of a chart.

    Args:
        chart: has at least one point.
        style: of the terminal. Without colour each curve is drawn with a letter.
        unicode: whether the terminal shows the characters of frames and curves.
    """
    import plotext

    width = min(_MOST_WIDTH, max(_LEAST_WIDTH, style.width or _USUAL_WIDTH))
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(width=False, height=False)
    plotext.plotsize(width, _HEIGHT)
    for at, series in chart.drawn:
        if series.points:
            mark = _choose_mark(at, chart, style, unicode=unicode)
            _draw_series(plotext, chart, series, mark, _COLOURS[at % len(_COLOURS)] if style.colour else None)
    _set_axes(plotext, chart)
    text: str = plotext.build()
    plotext.clear_figure()
    lines = [line.rstrip() for line in (text if style.colour else _COLOUR.sub("", text)).rstrip("\n").split("\n")]
    if not unicode:
        lines = [line.translate(_SIMPLE).encode("ascii", "replace").decode() for line in lines]
    notes = [shorten_to_width(chart.note, width)] if chart.note else []
    return [chart.title, *lines, *_list_labels(chart, style, width, unicode=unicode), *notes]


def _draw_series(plotext: Any, chart: Chart, series: ChartSeries, mark: str, colour: str | None) -> None:
    xs = [math.log10(x) if chart.x_log else x for x, _ in series.points]
    draw = plotext.plot if chart.joined and len(xs) > 1 else plotext.scatter
    draw(xs, [y for _, y in series.points], marker=mark, color=colour)


def _choose_mark(at: int, chart: Chart, style: Style, *, unicode: bool) -> str:
    if not chart.joined:
        mark = _BEST_POINT if chart.series[at].is_best else "•"
        return mark if unicode else mark.translate(_SIMPLE)
    single = len([series for series in chart.series if series.points]) == 1
    if chart.series[at].is_best and not single:
        return _BEST if unicode and style.colour else _PLAIN_BEST
    return "braille" if unicode and (style.colour or single) else _LETTERS[at % len(_LETTERS)]


def _set_axes(plotext: Any, chart: Chart) -> None:
    """Set the ends of the axes: plotext, a module without types, fails when all values are equal."""
    points = [point for series in chart.series for point in series.points]
    ys = find_ends([y for _, y in points])
    xs = find_ends([math.log10(x) if chart.x_log else x for x, _ in points])
    plotext.ylim(*ys)
    plotext.xlim(*xs)
    plotext.xlabel(chart.x_title)
    ticks = list_x_ticks(chart, xs, _TICKS)
    plotext.xticks([tick for tick, _ in ticks], [name for _, name in ticks])
    if long := list_y_ticks(*ys):
        plotext.yticks([tick for tick, _ in long], [name for _, name in long])


def _list_labels(chart: Chart, style: Style, width: int, *, unicode: bool) -> list[str]:
    labelled = [(at, series) for at, series in enumerate(chart.series) if series.label]
    lines = []
    for at, series in labelled:
        label = shorten_to_width(series.label, width - 4)
        empty = "" if series.points else " (nothing reported)"
        mark = _choose_mark(at, chart, style, unicode=unicode)
        if style.colour:
            line = "--" if mark == "braille" else mark * 2
            lines.append(f"\x1b[{_CODES[at % len(_CODES)]}m{line}\x1b[0m {label}{empty}")
        elif len(labelled) > 1 or series.is_best:
            lines.append(f"{_LETTERS[at % len(_LETTERS)] if mark == 'braille' else mark}  {label}{empty}")
        else:
            lines.append(f"{label}{empty}")
    return lines
