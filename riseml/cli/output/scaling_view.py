"""The scaling of a training as a table. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from riseml.analysis.csv_table import list_csv_lines
from riseml.analysis.scaling import Scaling, ScalingRow, find_scaling_reader, list_scaling_names
from riseml.cli.output.paper_table import PaperTable
from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table, measure_table
from riseml.cli.output.text import clean_text, count_noun, format_duration, format_metric

if TYPE_CHECKING:
    from riseml import wire

_DIGITS = 6  # of a metric
_TITLES = frozenset({"workers", "runs", "time", "speed-up", "efficiency"})


def list_scaling(scaling: Scaling, style: Style, digits: int | None = None) -> list[str]:
    """Return a row for each number of workers; metrics that the terminal has no room for are left out."""
    if not scaling.rows:
        return ["No experiment has finished: there is nothing to compare."]
    names = list_scaling_names(scaling)
    fewest = 5 + bool(scaling.rate)
    while True:
        columns = [Column(clean_text(_name_title(name)), right=True) for name in names]
        rows = [[_show_value(row, scaling, name, digits or _DIGITS) for name in names] for row in scaling.rows]
        if len(names) == fewest or style.width is None or measure_table(columns, rows) <= style.width:
            return [*build_table(columns, rows, style), "", *_list_notes(scaling)]
        names.pop()


def list_scaling_csv(scaling: Scaling) -> list[str]:
    """Return the table as lines of CSV: all digits, `time` in seconds, `efficiency` as a fraction of 1."""
    names = list_scaling_names(scaling)
    readers = [find_scaling_reader(scaling, name) for name in names]
    return list_csv_lines(names, ([read(row) for read in readers] for row in scaling.rows))


def make_scaling_table(scaling: Scaling, digits: int | None = None) -> PaperTable:
    """Return the table for a paper: times and percentages as people read them."""
    names = list_scaling_names(scaling)
    rows = [[_read_value(row, scaling, name) for name in names] for row in scaling.rows]
    return PaperTable(list(map(_name_title, names)), rows, digits=digits)


def _name_title(name: str) -> str:
    return name.upper() if name in _TITLES else name


def _read_value(row: ScalingRow, scaling: Scaling, name: str) -> str | float | None:
    value = find_scaling_reader(scaling, name)(row)
    if name == "time":
        return format_duration(value)
    return f"{value:.0%}" if name == "efficiency" and value is not None else value


def _show_value(row: ScalingRow, scaling: Scaling, name: str, digits: int) -> str:
    value = _read_value(row, scaling, name)
    if name == "speed-up" and isinstance(value, float):
        return f"{value:.2f}"
    return format_metric(value, digits)


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
