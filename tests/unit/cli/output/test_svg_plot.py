"""A chart as SVG: a curve or points, a legend, and no text that breaks the file."""

from __future__ import annotations

from xml.etree import ElementTree

from riseml.cli.output.chart import Chart, ChartSeries, make_scatter
from riseml.cli.output.svg_plot import draw_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_a_series_is_a_curve_and_the_best_one_is_thick() -> None:
    plain = ChartSeries("4.1", ((1.0, 0.0), (2.0, 1.0)))
    best = ChartSeries("4.2", ((1.0, 1.0), (2.0, 2.0)), is_best=True)
    root = ElementTree.fromstring(draw_svg(Chart("t", "step", "loss", (plain, best))))
    curves = root.findall(f"{SVG}polyline")
    assert sorted(curve.attrib["stroke-width"] for curve in curves) == ["2", "4"]
    starts = {curve.attrib["stroke-width"]: curve.attrib["points"].split()[0].split(",") for curve in curves}
    assert starts["2"][0] == starts["4"][0], "one step is one place"
    assert float(starts["2"][1]) > float(starts["4"][1]), "a larger value is higher up"


def test_points_of_a_parameter_are_not_joined() -> None:
    root = ElementTree.fromstring(draw_svg(make_scatter("accuracy", "lr", [("1e-5", 0.2), ("1e-1", 0.8)])))
    assert len(root.findall(f"{SVG}circle")) == 2
    assert root.findall(f"{SVG}polyline") == []


def test_texts_are_escaped_and_a_long_legend_is_cut() -> None:
    series = tuple(ChartSeries(f"<b>&{at}\x07", ((float(at), 1.0),)) for at in range(60))
    text = draw_svg(Chart("a < b", "x", "y", series))
    labels = [element.text or "" for element in ElementTree.fromstring(text).iter(f"{SVG}text")]
    assert "a < b" in labels
    assert sum(label.startswith("<b>&") for label in labels) == 40
