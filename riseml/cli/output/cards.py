"""Wide tables on every terminal: a table where it fits, else a card of several lines for each row. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table, measure_table
from riseml.cli.output.text import clean_text
from riseml.cli.output.widths import measure_width, pad_to_width, shorten_to_width

_INDENT = "  "
_GAP = "   "


def build_cards(columns: Sequence[Column], rows: Sequence[Sequence[str]], heads: int, style: Style) -> list[str]:
    """Return a table, or the same cells as cards when the table is wider than the terminal. Cells may be foreign.

    Args:
        columns: of the table.
        rows: their cells.
        heads: how many cells at the beginning of a row form the first line of its card, without titles.
        style: has the width.

    Example:
        >>> build_cards((Column("ID"), Column("CPU"), Column("MEM")), [["4.ps.1", "0.37 cores", "16 MiB"]], 1, narrow)
        ['4.ps.1', '  CPU  0.37 cores', '  MEM  16 MiB']
    """
    if style.width is None or measure_table(columns, rows) <= style.width:
        return build_table(columns, rows, style)
    rows = [[clean_text(cell).replace("\t", " ") for cell in row] for row in rows]
    titles, title_width = _list_titles(columns, heads)
    across, each = fit_cards(measure_card(columns, rows, heads), style.width)
    lines: list[str] = []
    for row in rows:
        lines += _list_heads(columns, row[:heads], style.width, colour=style.colour)
        pairs = [
            pad_to_width(f"{pad_to_width(title, title_width)}{_INDENT}{cell}", each)
            for title, cell in zip(titles, row[heads:], strict=True)
        ]
        lines += [_join_pairs(pairs[at : at + across], style.width) for at in range(0, len(pairs), across)]
    return lines


def measure_card(columns: Sequence[Column], rows: Sequence[Sequence[str]], heads: int) -> int:
    """Return the columns of a terminal that the widest title and the widest cell take, side by side."""
    cells = [clean_text(cell) for row in rows for cell in row[heads:]]
    return _list_titles(columns, heads)[1] + len(_INDENT) + max(map(measure_width, cells), default=0)


def fit_cards(each: int, width: int) -> tuple[int, int]:
    """Return how many pairs of title and cell fit side by side, and how wide each may be.

    Args:
        each: columns of the terminal that a pair needs.
        width: of the terminal.
    """
    across = max(1, (width - len(_INDENT) + len(_GAP)) // (each + len(_GAP)))
    return across, max(each, (width - len(_INDENT) + len(_GAP)) // across - len(_GAP))


def _list_titles(columns: Sequence[Column], heads: int) -> tuple[list[str], int]:
    """Return the titles of the pairs, and how wide they are."""
    titles = [column.short or column.title for column in columns[heads:]]
    return titles, max(map(measure_width, titles), default=0)


def _list_heads(columns: Sequence[Column], cells: Sequence[str], width: int, *, colour: bool) -> Iterator[str]:
    """Yield the heads of a card, in as many lines as they need."""
    line: list[str] = []
    used = 0
    for column, cell in zip(columns, cells, strict=False):
        text = shorten_to_width(cell, width)
        size = measure_width(text)
        if line and used + len(_INDENT) + size > width:
            yield _INDENT.join(line)
            line = []
            used = 0
        used += size + (len(_INDENT) if line else 0)
        line.append(column.paint(cell, text, colour=colour))
    yield _INDENT.join(line)


def _join_pairs(pairs: Sequence[str], width: int) -> str:
    return shorten_to_width(f"{_INDENT}{_GAP.join(pairs)}".rstrip(), width)
