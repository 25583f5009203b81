"""A chart as SVG: a picture for a page, without a library. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

from riseml.cli.output.chart import Chart, choose_ticks, find_ends, list_x_ticks

_WIDTH = 800
_HEIGHT = 480
_LEFT = 70
_RIGHT = 20
_TOP = 40
_BOTTOM = 60
_LINE = 18  # height of a line of the legend
_MOST_LABELS = 40
_COLOURS = (
    "#1f77b4",
    "#ff7f0e",
    "#2ca02c",
    "#d62728",
    "#9467bd",
    "#8c564b",
    "#e377c2",
    "#7f7f7f",
    "#bcbd22",
    "#17becf",
)
_INVALID = {code: " " for code in range(32)}


def draw_svg(chart: Chart) -> str:
    """Return the text of an SVG file. The chart has at least one point."""
    return "\n".join([*_draw_lines(chart), ""])


def _draw_lines(chart: Chart) -> Iterator[str]:
    points = [point for series in chart.series for point in series.extent]
    xs = find_ends([_place_x(x, chart) for x, _ in points])
    ys = find_ends([y for _, y in points])
    labels = [(at, series) for at, series in enumerate(chart.series) if series.label][:_MOST_LABELS]
    height = _HEIGHT + _LINE * (len(labels) + bool(chart.note))
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="13">'
    )
    yield f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
    yield _write_text(_WIDTH / 2, 24, chart.title, anchor="middle", more=' font-size="16"')
    yield from _draw_axes(chart, xs, ys)
    yield from _draw_bands(chart, xs, ys)
    for at, series in chart.drawn:
        colour = _COLOURS[at % len(_COLOURS)]
        width = 4 if series.is_best else 2
        spots = [(_across(_place_x(x, chart), xs), _down(y, ys)) for x, y in series.points]
        if chart.joined and len(spots) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
        else:
            yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in spots)
    for line, (at, series) in enumerate(labels):
        y = _HEIGHT + _LINE * line + 4
        yield f'<rect x="{_LEFT}" y="{y - 6}" width="18" height="4" fill="{_COLOURS[at % len(_COLOURS)]}"/>'
        yield _write_text(_LEFT + 26, y, series.label)
    if chart.note:
        yield _write_text(_LEFT, _HEIGHT + _LINE * len(labels) + 4, chart.note)
    yield "</svg>"


def _draw_bands(chart: Chart, xs: tuple[float, float], ys: tuple[float, float]) -> Iterator[str]:
    for at, series in chart.drawn:
        if not series.band:
            continue
        upper = [(x, high) for x, _, high in series.band]
        lower = [(x, low) for x, low, _ in reversed(series.band)]
        spots = [(_across(_place_x(x, chart), xs), _down(y, ys)) for x, y in (*upper, *lower)]
        edge = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        yield f'<polygon points="{edge}" fill="{_COLOURS[at % len(_COLOURS)]}" fill-opacity="0.18" stroke="none"/>'


def _draw_axes(chart: Chart, xs: tuple[float, float], ys: tuple[float, float]) -> Iterator[str]:
    bottom = _HEIGHT - _BOTTOM
    right = _WIDTH - _RIGHT
    yield (
        f'<path d="M{_LEFT},{_TOP} V{bottom} H{right}" fill="none" stroke="#444"/>'  # the y axis, then the x axis
    )
    for tick in choose_ticks(*ys, 6):
        y = _down(tick, ys)
        yield f'<path d="M{_LEFT},{y:.1f} H{right}" stroke="#ddd"/>'
        yield _write_text(_LEFT - 8, y + 4, f"{tick:g}", anchor="end")
    for tick, name in list_x_ticks(chart, xs, 8):
        x = _across(tick, xs)
        yield f'<path d="M{x:.1f},{bottom} v5" stroke="#444"/>'
        yield _write_text(x, bottom + 20, name, anchor="middle")
    yield _write_text(_WIDTH / 2, _HEIGHT - 16, chart.x_title, anchor="middle")
    middle = (_TOP + bottom) / 2
    yield _write_text(18, middle, chart.y_title, anchor="middle", more=f' transform="rotate(-90 18 {middle:.1f})"')


def _write_text(x: float, y: float, text: str, *, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text.translate(_INVALID))}</text>'


def _place_x(x: float, chart: Chart) -> float:
    return math.log10(x) if chart.x_log else x


def _across(x: float, ends: tuple[float, float]) -> float:
    return _LEFT + (x - ends[0]) / (ends[1] - ends[0]) * (_WIDTH - _LEFT - _RIGHT)


def _down(y: float, ends: tuple[float, float]) -> float:
    return _HEIGHT - _BOTTOM - (y - ends[0]) / (ends[1] - ends[0]) * (_HEIGHT - _TOP - _BOTTOM)
