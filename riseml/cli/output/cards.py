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
        heads: so many first cells of a row are the first line of its card, without their titles.
        style: has the width.

    Example:
        >>> build_cards((Column("ID"), Column("CPU"), Column("MEM")), [["4.ps.1", "0.37 cores", "16 MiB"]], 1, narrow)
        ['4.ps.1', '  CPU  0.37 cores', '  MEM  16 MiB']
    """
    if style.width is None or measure_table(columns, rows) <= style.width:
        return build_table(columns, rows, style)
    rows = [[clean_text(cell).replace("\t", " ") for cell in row] for row in rows]
    titles = [column.title for column in columns[heads:]]
    title_width = max(map(measure_width, titles), default=0)
    cell_width = max((measure_width(cell) for row in rows for cell in row[heads:]), default=0)
    each = title_width + 2 + cell_width
    across = max(1, (style.width - len(_INDENT) + len(_GAP)) // (each + len(_GAP)))
    lines: list[str] = []
    for row in rows:
        lines += _list_heads(columns, row[:heads], style.width, colour=style.colour)
        pairs = [
            pad_to_width(f"{pad_to_width(title, title_width)}  {cell}", each)
            for title, cell in zip(titles, row[heads:], strict=True)
        ]
        lines += [_join_pairs(pairs[at : at + across], style.width) for at in range(0, len(pairs), across)]
    return lines


def _list_heads(columns: Sequence[Column], cells: Sequence[str], width: int, *, colour: bool) -> Iterator[str]:
    """Yield the heads of a card, in as many lines as they need."""
    line: list[str] = []
    used = 0
    for column, cell in zip(columns, cells, strict=False):
        shown = shorten_to_width(cell, width)
        size = measure_width(shown)
        if line and used + len(_INDENT) + size > width:
            yield _INDENT.join(line)
            line, used = [], 0
        used += size + (len(_INDENT) if line else 0)
        line.append(column.paint(cell, shown, colour=colour))
    yield _INDENT.join(line)


def _join_pairs(pairs: Sequence[str], width: int) -> str:
    return shorten_to_width(f"{_INDENT}{_GAP.join(pairs)}".rstrip(), width)
