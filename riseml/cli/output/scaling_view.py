"""The scaling of a training as a table. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from riseml.cli.output.results_view import format_time
from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table, measure_table
from riseml.cli.output.text import clean_text, count_noun, format_metric
from riseml.results.scaling import Scaling, ScalingRow

if TYPE_CHECKING:
    from riseml import wire

_MISSING = "-"


def list_scaling(scaling: Scaling, style: Style) -> list[str]:
    """Return a row for each number of workers; metrics that the terminal has no room for are left out."""
    if not scaling.rows:
        return ["No experiment has finished: there is nothing to compare."]
    metrics = list(dict.fromkeys(name for row in scaling.rows for name in row.metrics))
    while True:
        columns = [
            *(Column(title, right=True) for title in ("WORKERS", "RUNS", "TIME")),
            *([Column(clean_text(scaling.rate), right=True)] if scaling.rate else []),
            *(Column(title, right=True) for title in ("SPEED-UP", "EFFICIENCY")),
            *(Column(clean_text(name), right=True) for name in metrics),
        ]
        rows = [_make_cells(row, scaling, metrics) for row in scaling.rows]
        if not metrics or style.width is None or measure_table(columns, rows) <= style.width:
            return [*build_table(columns, rows, style), "", *_list_notes(scaling)]
        metrics.pop()


def _make_cells(row: ScalingRow, scaling: Scaling, metrics: list[str]) -> list[str]:
    efficiency = _MISSING if row.efficiency is None else f"{row.efficiency:.0%}"
    return [
        str(row.workers),
        str(row.runs),
        format_time(row.seconds),
        *([format_metric(row.rate)] if scaling.rate else []),
        _MISSING if row.speed_up is None else f"{row.speed_up:.2f}",
        efficiency,
        *(format_metric(row.metrics.get(name)) for name in metrics),
    ]


def _list_notes(scaling: Scaling) -> list[str]:
    subject = (
        f"the rate {scaling.rate}" if scaling.rate else "the time; report a rate, and name it with --rate, if they"
    )
    more = "" if scaling.rate else " do not all do the same work"
    notes = [f"Speed-up and efficiency are those of {subject}{more}."]
    if scaling.left_out:
        notes.append(f"{count_noun(scaling.left_out, 'experiment')} not finished, and left out.")
    return [clean_text(note) for note in notes]


def show_scaling(scaling: Scaling) -> wire.ScalingView:
    """Return the table as JSON shows it."""
    return {
        "rate": scaling.rate or None,
        "rows": [
            {
                "workers": row.workers,
                "runs": row.runs,
                "seconds": row.seconds,
                "rate": row.rate,
                "speed_up": row.speed_up,
                "efficiency": row.efficiency,
                "metrics": dict(row.metrics),
            }
            for row in scaling.rows
        ],
        "left_out": scaling.left_out,
    }
