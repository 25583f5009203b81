"""The use of jobs next to their requested resources, as lines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from riseml.cli.output.cards import build_cards, fit_cards, measure_card
from riseml.cli.output.sparklines import draw_sparkline
from riseml.cli.output.style import Style, paint
from riseml.cli.output.tables import Column, measure_table
from riseml.cli.output.text import clean_text, count_noun, format_bytes, format_cores, format_of, format_rate
from riseml.cli.output.widths import wrap_to_width
from riseml.names import LOCAL_HOST, THIS_MACHINE
from riseml.records import dataclass
from riseml.stragglers import WINDOW, Remark, find_stragglers
from riseml.trends import Amount, Trends

if TYPE_CHECKING:
    from riseml import wire

_UNKNOWN = "-"
_MARK = "!"  # marks a job that a remark is about
_ATTENTION = "1;33"
_HEADS = (Column("ID"), Column("STATE", states=True), Column("PROJECT"))
_HOST = Column("HOST")
_IMAGE = Column("IMAGE", shrinks=True)
_LINES = "LINES"
_SHORTEST_SPARK, _LONGEST_SPARK = 4, 30  # columns of a terminal


def _read_nothing(_: wire.SampleView) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Series:
    """A column of amounts, and how its last minutes are drawn."""

    column: Column
    amount: Amount | None = None  # None: it has no sparkline
    asked: Callable[[wire.SampleView], float] = _read_nothing  # its sparkline reaches at least to this amount
    always: bool = False  # shown even when no job has a value


_SERIES = (
    Series(
        Column("CPU used/asked", right=True, short="CPU"),
        lambda one: one["cpu"],
        lambda one: one["cpus"] * 100,
        always=True,
    ),
    Series(
        Column("MEM used/asked", right=True, short="MEM"),
        lambda one: one["mem_used"],
        lambda one: one["mem_mib"] * 2**20,
        always=True,
    ),
    Series(Column("MEM limit", right=True), always=True),
    Series(Column("GPU", right=True), lambda one: one["gpu"], lambda _: 100.0),
    Series(Column("GPU MEM", right=True), lambda one: one["gpu_mem_used"]),
    Series(Column("NET in", right=True), lambda one: one["net_in"]),
    Series(Column("NET out", right=True), lambda one: one["net_out"]),
    Series(Column("DISK read", right=True), lambda one: one["disk_read"]),
    Series(Column("DISK write", right=True), lambda one: one["disk_write"]),
    Series(Column(_LINES, right=True), lambda one: one["lines"]),
)


def list_use(
    samples: Sequence[wire.SampleView], style: Style, trends: Trends | None = None, *, sparks: bool = False
) -> list[str]:
    """Return the use of jobs: a table where it fits, else some lines for each job. Both show the same amounts.

    A column that is unknown for every job is left out.

    Args:
        samples: one for each job.
        style: has the width.
        trends: the samples of a live view so far; they add the rate of lines, and remarks about jobs that slow others
        down.
        sparks: draw the last minutes beside each amount, where there is room.
    """
    remarks = [] if trends is None else find_stragglers(samples, trends)
    columns, heads = _make_heads(samples, {remark.job for remark in remarks})
    cells = [_list_cells(one, trends) for one in samples]
    shown = [at for at, one in enumerate(_SERIES) if one.always or any(row[at] != _UNKNOWN for row in cells)]
    count, columns = len(columns), columns + [_SERIES[at].column for at in shown]
    rows = [[*head, *(row[at] for at in shown)] for head, row in zip(heads, cells, strict=True)]
    if trends is not None and sparks and style.width is not None:
        drawn = sum(_SERIES[at].amount is not None for at in shown)
        size = min(_LONGEST_SPARK, _find_spark_room(columns, rows, count, style.width, drawn))
        for row, one in zip(rows, samples, strict=True) if size >= _SHORTEST_SPARK else ():
            row[count:] = [
                f"{_draw_spark(_SERIES[at], one, trends, size)}{row[count + i]}" for i, at in enumerate(shown)
            ]
    return [*build_cards(columns, rows, count, style), *_list_remarks(remarks, style)]


def _make_heads(samples: Sequence[wire.SampleView], marked: set[str]) -> tuple[list[Column], list[list[str]]]:
    """Return the columns that say which job it is, and their cells."""
    several = any(one["host"] not in (None, LOCAL_HOST, THIS_MACHINE) for one in samples)
    images = _has_role_images(samples)
    rows = []
    for one in samples:
        mark = f" {_MARK}" if one["id"] in marked else ""
        own = [*([one.get("node") or one["host"] or _UNKNOWN] * several), *([one["image"]] * images)]
        rows.append([f"{one['id']}{mark}", one["state"], one["project"], *own])
    return [*_HEADS, *([_HOST] * several), *([_IMAGE] * images)], rows


def _has_role_images(samples: Sequence[wire.SampleView]) -> bool:
    """Return True when two jobs of one experiment have different images."""
    images: dict[str, set[str]] = {}
    for one in samples:
        experiment = one["id"].rstrip("0123456789").rstrip(".").rpartition(".")[0]
        images.setdefault(experiment, set()).add(one["image"])
    return any(len(found) > 1 for found in images.values())


def _list_cells(one: wire.SampleView, trends: Trends | None) -> list[str]:
    """Return the cells of all series."""
    cpu, used, limit = one["cpu"], one["mem_used"], one["mem_total"]
    rates = (one["net_in"], one["net_out"], one["disk_read"], one["disk_write"])
    return [
        format_of(_UNKNOWN if cpu is None else format_cores(cpu / 100), format_cores(one["cpus"])),
        format_of(_UNKNOWN if used is None else format_bytes(used), format_bytes(one["mem_mib"] * 2**20)),
        _UNKNOWN if limit is None else format_bytes(limit),
        *_list_gpus(one),
        *(_UNKNOWN if rate is None else f"{format_bytes(rate)}/s" for rate in rates),
        _show_lines(one["id"], trends),
    ]


def _list_gpus(one: wire.SampleView) -> list[str]:
    """Return the load of its GPUs; their number is known before they are read."""
    busy = "" if one["gpu"] is None else f"{one['gpu']:.0f} % of "
    used, whole = one["gpu_mem_used"], one["gpu_mem_total"]
    memory = _UNKNOWN if used is None or whole is None else format_of(format_bytes(used), format_bytes(whole))
    return [f"{busy}{count_noun(one['gpus'], 'GPU')}" if one["gpus"] or busy else _UNKNOWN, memory]


def _show_lines(job: str, trends: Trends | None) -> str:
    """Return the rate of lines that a job prints, averaged over the last minute."""
    found = None if trends is None else trends.count_lines(job, WINDOW)
    return _UNKNOWN if found is None or not found[1] else format_rate(found[0] / found[1])


def _find_spark_room(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], heads: int, width: int, drawn: int
) -> int:
    """Return how many columns of the terminal each of the `drawn` sparklines may take; a space follows it."""
    in_table = (width - measure_table(columns, rows)) // drawn - 1
    if in_table >= _SHORTEST_SPARK:
        return in_table
    each = measure_card(columns, rows, heads)
    return fit_cards(each + 1 + _SHORTEST_SPARK, width)[1] - each - 1


def _draw_spark(series: Series, one: wire.SampleView, trends: Trends, size: int) -> str:
    """Return a sparkline of the last minutes of an amount, which goes before its cell."""
    if series.amount is None:
        return ""
    if series.column.title == _LINES:
        return draw_sparkline(trends.list_line_rates(one["id"]), size) + " "
    return draw_sparkline(trends.list_amounts(one["id"], series.amount), size, series.asked(one)) + " "


def _list_remarks(remarks: Sequence[Remark], style: Style) -> list[str]:
    lines: list[str] = []
    for remark in remarks:
        text = clean_text(f"{_MARK} {remark.text}")
        folded = [text] if style.width is None else wrap_to_width(text, style.width)
        lines += [paint(line, _ATTENTION, colour=style.colour) for line in folded]
    return ["", *lines] if lines else []
