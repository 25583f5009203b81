"""A chart as a PNG, drawn by matplotlib: an extra, because most users never need it."""

from __future__ import annotations

from pathlib import Path

from riseml.base.errors import UsageError
from riseml.cli.output.chart import Chart

_SIZE = (8, 5)  # inches
_RESOLUTION = 120  # points per inch


def write_png(chart: Chart, path: Path) -> None:
    """Write a chart to a file.

    Raises:
        UsageError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            "--png needs matplotlib, which is not installed",
            "pip install 'riseml[plot]', or use --svg, which needs nothing",
        ) from None
    figure = Figure(figsize=_SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for _, series in chart.drawn:
        xs = [x for x, _ in series.points]
        ys = [y for _, y in series.points]
        style = "-" if chart.joined and len(xs) > 1 else "o"
        lines = axes.plot(xs, ys, style, label=_escape_formula(series.label), linewidth=3 if series.is_best else 1.5)
        if series.band:
            steps, low, high = zip(*series.band, strict=True)
            axes.fill_between(steps, low, high, color=lines[0].get_color(), alpha=0.18, linewidth=0)
    if chart.x_log:
        axes.set_xscale("log")
    if chart.x_names:
        axes.set_xticks(range(1, len(chart.x_names) + 1), [_escape_formula(name) for name in chart.x_names])
    axes.set_title(_escape_formula(chart.title))
    axes.set_xlabel(_escape_formula(chart.x_title))
    axes.set_ylabel(_escape_formula(chart.y_title))
    axes.grid(visible=True, alpha=0.3)
    if any(series.label for series in chart.series):
        axes.legend()
    if chart.note:
        figure.supxlabel(_escape_formula(chart.note), fontsize="small")
    figure.savefig(path, format="png", dpi=_RESOLUTION)


def _escape_formula(text: str) -> str:
    """Return text that matplotlib draws as it is: a dollar would begin a formula."""
    return text.replace("$", r"\$").lstrip("_")
