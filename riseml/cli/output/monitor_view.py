"""The use of jobs next to their requested resources, as lines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from riseml.analysis.stragglers import WINDOW, StragglerWarning, find_stragglers
from riseml.analysis.trends import Amount, Trends
from riseml.base.names import LOCAL_HOST, THIS_MACHINE
from riseml.base.records import dataclass
from riseml.cli.output.cards import build_cards, fit_cards, measure_card
from riseml.cli.output.progress_view import show_progress_cell
from riseml.cli.output.sparklines import draw_sparkline
from riseml.cli.output.style import Style, paint
from riseml.cli.output.tables import Column, measure_table
from riseml.cli.output.text import clean_text, count_noun, format_bytes, format_cores, format_of, format_rate
from riseml.cli.output.widths import wrap_to_width

if TYPE_CHECKING:
    from riseml import wire

_UNKNOWN = "-"
_MARK = "!"  # marks a job that a warning is about
_ATTENTION = "1;33"
_HEADS = (Column("ID"), Column("STATE", states=True), Column("PROJECT"))
_HOST = Column("HOST")
_IMAGE = Column("IMAGE", shrinks=True)
_LINES = "LINES"
_SHORTEST_SPARK = 4  # columns of a terminal
_LONGEST_SPARK = 30


def _read_nothing(_: wire.SampleView) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Series:
    """A column of amounts, and how its last minutes are drawn."""

    column: Column
    amount: Amount | None = None  # None: it has no sparkline
    requested: Callable[[wire.SampleView], float] = _read_nothing  # its sparkline reaches at least to this amount
    always: bool = False  # shown even when no job has a value


_SERIES = (
    Series(
        Column("CPU used/asked", right=True, short="CPU"),
        lambda sample: sample["cpu"],
        lambda sample: sample["cpus"] * 100,
        always=True,
    ),
    Series(
        Column("MEM used/asked", right=True, short="MEM"),
        lambda sample: sample["mem_used"],
        lambda sample: sample["mem_mib"] * 2**20,
        always=True,
    ),
    Series(Column("MEM limit", right=True), always=True),
    Series(Column("GPU", right=True), lambda sample: sample["gpu"], lambda _: 100.0),
    Series(Column("GPU MEM", right=True), lambda sample: sample["gpu_mem_used"]),
    Series(Column("NET in", right=True), lambda sample: sample["net_in"]),
    Series(Column("NET out", right=True), lambda sample: sample["net_out"]),
    Series(Column("DISK read", right=True), lambda sample: sample["disk_read"]),
    Series(Column("DISK write", right=True), lambda sample: sample["disk_write"]),
    Series(Column(_LINES, right=True), lambda sample: sample["lines"]),
    Series(Column("PROGRESS")),
)


def list_use(
    samples: Sequence[wire.SampleView], style: Style, trends: Trends | None = None, *, sparks: bool = False
) -> list[str]:
    """Return the use of jobs: a table where it fits, else some lines for each job. Both show the same amounts.

    A column that is unknown for every job is left out.

    Args:
        samples: one for each job.
        style: has the width.
        trends: the samples of a live view so far; they add the rate of lines, and warnings about jobs that slow others
        down.
        sparks: draw the last minutes beside each amount, where there is room.
    """
    warnings = [] if trends is None else find_stragglers(samples, trends)
    columns, heads = _make_heads(samples, {warning.job for warning in warnings})
    cells = [_list_cells(sample, trends) for sample in samples]
    visible = [at for at, series in enumerate(_SERIES) if series.always or any(row[at] != _UNKNOWN for row in cells)]
    count, columns = len(columns), columns + [_SERIES[at].column for at in visible]
    rows = [[*head, *(row[at] for at in visible)] for head, row in zip(heads, cells, strict=True)]
    if trends is not None and sparks and style.width is not None:
        drawn = sum(_SERIES[at].amount is not None for at in visible)
        size = min(_LONGEST_SPARK, _find_spark_room(columns, rows, count, style.width, drawn))
        for row, sampled in zip(rows, samples, strict=True) if size >= _SHORTEST_SPARK else ():
            row[count:] = [
                f"{_draw_spark(_SERIES[at], sampled, trends, size)}{row[count + i]}" for i, at in enumerate(visible)
            ]
    return [*build_cards(columns, rows, count, style), *_list_warnings(warnings, style)]


def _make_heads(samples: Sequence[wire.SampleView], marked: set[str]) -> tuple[list[Column], list[list[str]]]:
    """Return the columns that say which job it is, and their cells."""
    several = any(sample["host"] not in (None, LOCAL_HOST, THIS_MACHINE) for sample in samples)
    images = _has_role_images(samples)
    rows = []
    for sample in samples:
        mark = f" {_MARK}" if sample["id"] in marked else ""
        own = [*([sample.get("node") or sample["host"] or _UNKNOWN] * several), *([sample["image"]] * images)]
        rows.append([f"{sample['id']}{mark}", sample["state"], sample["project"], *own])
    return [*_HEADS, *([_HOST] * several), *([_IMAGE] * images)], rows


def _has_role_images(samples: Sequence[wire.SampleView]) -> bool:
    """Return True when two jobs of one experiment have different images."""
    images: dict[str, set[str]] = {}
    for sample in samples:
        experiment = sample["id"].rstrip("0123456789").rstrip(".").rpartition(".")[0]
        images.setdefault(experiment, set()).add(sample["image"])
    return any(len(image) > 1 for image in images.values())


def _list_cells(sample: wire.SampleView, trends: Trends | None) -> list[str]:
    """Return the cells of all series."""
    cpu = sample["cpu"]
    used = sample["mem_used"]
    limit = sample["mem_total"]
    rates = (sample["net_in"], sample["net_out"], sample["disk_read"], sample["disk_write"])
    return [
        format_of(_UNKNOWN if cpu is None else format_cores(cpu / 100), format_cores(sample["cpus"])),
        format_of(_UNKNOWN if used is None else format_bytes(used), format_bytes(sample["mem_mib"] * 2**20)),
        _UNKNOWN if limit is None else format_bytes(limit),
        *_list_gpus(sample),
        *(_UNKNOWN if rate is None else f"{format_bytes(rate)}/s" for rate in rates),
        _show_lines(sample["id"], trends),
        show_progress_cell(sample.get("progress"), sample.get("rates", ())),  # an earlier server sends neither
    ]


def _list_gpus(sample: wire.SampleView) -> list[str]:
    """Return the load of its GPUs; their number is known before they are read."""
    busy = "" if sample["gpu"] is None else f"{sample['gpu']:.0f} % of "
    used = sample["gpu_mem_used"]
    whole = sample["gpu_mem_total"]
    memory = _UNKNOWN if used is None or whole is None else format_of(format_bytes(used), format_bytes(whole))
    return [f"{busy}{count_noun(sample['gpus'], 'GPU')}" if sample["gpus"] or busy else _UNKNOWN, memory]


def _show_lines(job: str, trends: Trends | None) -> str:
    """Return the rate of lines that a job prints, averaged over the last minute."""
    count = None if trends is None else trends.count_lines(job, WINDOW)
    return _UNKNOWN if count is None or not count[1] else format_rate(count[0] / count[1])


def _find_spark_room(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], heads: int, width: int, drawn: int
) -> int:
    """Return how many columns of the terminal each of the `drawn` sparklines may take; a space follows it."""
    in_table = (width - measure_table(columns, rows)) // drawn - 1
    if in_table >= _SHORTEST_SPARK:
        return in_table
    each = measure_card(columns, rows, heads)
    return fit_cards(each + 1 + _SHORTEST_SPARK, width)[1] - each - 1


def _draw_spark(series: Series, sample: wire.SampleView, trends: Trends, size: int) -> str:
    """Return a sparkline of the last minutes of an amount, which goes before its cell."""
    if series.amount is None:
        return ""
    if series.column.title == _LINES:
        return draw_sparkline(trends.list_line_rates(sample["id"]), size) + " "
    return draw_sparkline(trends.list_amounts(sample["id"], series.amount), size, series.requested(sample)) + " "


def _list_warnings(warnings: Sequence[StragglerWarning], style: Style) -> list[str]:
    lines: list[str] = []
    for warning in warnings:
        text = clean_text(f"{_MARK} {warning.text}")
        folded = [text] if style.width is None else wrap_to_width(text, style.width)
        lines += [paint(line, _ATTENTION, colour=style.colour) for line in folded]
    return ["", *lines] if lines else []
