"""Charts on a terminal, and the same charts as SVG: any values at any width."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from riseml.cli.output.chart import Chart, ChartSeries, make_curves, make_scatter
from riseml.cli.output.style import Style
from riseml.cli.output.svg_plot import draw_svg
from riseml.cli.output.terminal_plot import draw_chart
from riseml.cli.output.text import clean_text
from riseml.cli.output.widths import measure_width
from tests.unit.cli.result_rows import BAD, ROWS, make_history

CHARTS = [
    Chart("t", "x", "y", (ChartSeries("one", ((1.0, 2.0),)),)),
    Chart("t", "x", "y", (ChartSeries("same", ((1.0, 2.0), (5.0, 2.0))),)),
    Chart("t", "x", "y", (ChartSeries("far", ((0.0, -1e30), (1e12, 1e30))),)),
    Chart("t", "x", "y", tuple(ChartSeries(f"s{at}", ((1.0, at), (2.0, -at))) for at in range(12))),
    make_scatter("accuracy", "lr", [("1e-5", 0.2), ("1e-1", 0.8)]),
    make_scatter("accuracy", "opt", [("adam", 0.2), (f"sgd{BAD}", 0.8)]),
    make_curves("accuracy", [(ROWS[0], make_history(2, 1, 2, 3, steps=False))]),
    make_curves("accuracy", [(one, make_history(2, 1, 2, 3)) for one in ROWS], "144.2"),
    make_scatter("accuracy", "lr", [("1e-5", 0.2), ("1e-1", 0.8)], ("144.2", ("1e-1", 0.8))),
]


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize(("width", "colour"), [(40, False), (80, True), (200, True), (None, False)])
def test_every_chart_is_drawn_and_fits(chart: Chart, width: int | None, *, colour: bool) -> None:
    lines = draw_chart(chart, Style(colour, width))
    assert max(measure_width(clean_text(line)) for line in lines) <= max(30, min(160, width or 80))
    assert not any("\x07" in line or "\u202e" in line for line in lines)
    assert all(line.isascii() for line in draw_chart(chart, Style(width=width), unicode=False))
    ElementTree.fromstring(draw_svg(chart))


def test_a_run_that_diverges_leaves_room_for_its_curve() -> None:
    chart = Chart("loss", "step", "loss", (ChartSeries("one", ((0.0, 1.0), (1.0, 2.5), (2.0, 1e35))),))
    lines = draw_chart(chart, Style(width=40))
    assert lines[1] == " " * 7 + "┌" + "─" * 31 + "┐"
    assert lines[2].startswith("1.0e+35┤")
