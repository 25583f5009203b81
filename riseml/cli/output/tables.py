"""Tables of plain text that fit a terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from riseml.base.records import dataclass
from riseml.cli.output.style import Style, paint_state
from riseml.cli.output.text import clean_text
from riseml.cli.output.widths import measure_width, shorten_to_width, wrap_to_width

_NARROWEST = 8  # the width of a shortened or folded column in terminal columns, at least
_LEAST = 3  # the width of any other column whose cells are cut


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    title: str
    right: bool = False  # aligned to the right, for numbers
    shrinks: bool = False  # cut with `…` when the terminal is too narrow
    folds: bool = False  # continued in further lines when the terminal is too narrow
    short: str = ""  # a title for narrow terminals; empty: the usual one
    states: bool = False  # its cells are states, each in its colour
    # Left out where the table is wider than the terminal with all columns as narrow as they may be: the column with the
    # largest number first. 0: never.
    spare: int = 0

    def paint(self, cell: str, text: str, *, colour: bool) -> str:
        """Return `text`, which shows `cell`, in the colour of the cell."""
        return paint_state(cell, text, colour=colour) if self.states else text


def measure_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Return the columns of a terminal that the whole table takes; the cells may have foreign text."""
    clean = [[clean_text(cell).replace("\t", " ") for cell in row] for row in rows]
    return _sum_widths(_measure_columns([[column.title] for column in columns], clean), 2)


def build_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], style: Style | None = None) -> list[str]:
    """Return the lines of a table, the titles first. Cells may have foreign text.

    A table that is wider than the terminal gets titles of several lines, then shorter gaps, then narrower columns
    where the columns allow it, then fewer columns (`Column.spare`); at last every cell is cut. No row is broken.

    Example:
        >>> build_table((Column("ID"), Column("CPUS", right=True)), [["4.worker.1", "2"]])
        ['ID          CPUS', '4.worker.1     2']
    """
    width = (style or Style()).width
    rows = [[clean_text(cell).replace("\t", " ") for cell in row] for row in rows]
    if width is not None:
        columns, rows = _leave_out_columns(columns, rows, width)
    titles = [[column.title] for column in columns]
    gap = 2
    widths = _measure_columns(titles, rows)
    if width is not None and _sum_widths(widths, gap) > width:
        needed = _measure_columns([[] for _ in columns], rows)
        titles = [_fold_title(column.title, needed[at]) for at, column in enumerate(columns)]
        widths = _measure_columns(titles, rows)
        gap = 2 if _sum_widths(widths, gap) <= width else 1
        _narrow_columns(columns, widths, gap, width)
        rows = [part for row in rows for part in _fold_row(columns, widths, row)]
    height = max(len(title) for title in titles)
    heads = zip(*([""] * (height - len(title)) + title for title in titles), strict=True)
    plain = Style()
    titled = [_join_cells(columns, widths, row, " " * gap, plain) for row in heads]
    return [*titled, *(_join_cells(columns, widths, row, " " * gap, style or plain) for row in rows)]


def _narrow_columns(columns: Sequence[Column], widths: list[int], gap: int, width: int) -> None:
    """Make `widths` of columns that may become narrower smaller, from the left, until the table fits `width`."""
    for at, column in enumerate(columns):
        if column.shrinks or column.folds:
            excess = max(0, _sum_widths(widths, gap) - width)
            widths[at] = min(widths[at], max(_NARROWEST, widths[at] - excess))
    for at in range(len(widths) - 1, -1, -1):  # what no rule above allows is still better than broken rows
        excess = max(0, _sum_widths(widths, gap) - width)
        widths[at] = min(widths[at], max(_LEAST, widths[at] - excess))


def _leave_out_columns(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
) -> tuple[Sequence[Column], Sequence[Sequence[str]]]:
    """Return the columns for which a terminal has room, and their cells."""
    chosen = list(range(len(columns)))
    needed = _measure_columns([[word for word in column.title.split()] for column in columns], rows)
    least = [
        min(size, _NARROWEST) if column.shrinks or column.folds else size
        for column, size in zip(columns, needed, strict=True)
    ]
    while _sum_widths([least[at] for at in chosen], 1) > width:
        last = max(chosen, key=lambda at: columns[at].spare)
        if not columns[last].spare:
            break
        chosen.remove(last)
    if len(chosen) == len(columns):
        return columns, rows
    return [columns[at] for at in chosen], [[row[at] for at in chosen] for row in rows]


def _fold_row(columns: Sequence[Column], widths: Sequence[int], row: Sequence[str]) -> list[list[str]]:
    """Return a row as the lines that its longest cell needs."""
    cells = [
        wrap_to_width(cell, width) if column.folds and measure_width(cell) > width else [cell]
        for column, width, cell in zip(columns, widths, row, strict=True)
    ]
    return [list(line) for line in zip_longest(*cells, fillvalue="")]


def _fold_title(title: str, width: int) -> list[str]:
    """Return a title in lines that are as narrow as the cells below it allow; no word is broken."""
    return wrap_to_width(title, max(width, 1, *(len(word) for word in title.split())))


def _measure_columns(titles: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(measure_width, ("", *title, *(row[at] for row in rows)))) for at, title in enumerate(titles)]


def _sum_widths(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def _join_cells(columns: Sequence[Column], widths: Sequence[int], row: Sequence[str], gap: str, style: Style) -> str:
    cells = []
    for column, width, cell in zip(columns, widths, row, strict=True):
        text = shorten_to_width(cell, width)
        space = " " * (width - measure_width(text))
        painted = column.paint(cell, text, colour=style.colour)
        cells.append(space + painted if column.right else painted + space)
    return gap.join(cells).rstrip()
