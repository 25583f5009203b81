"""Text that is safe and short: other people's output without its terminal tricks, sizes, ages, columns. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from riseml.terminal_text import plain_line

# Control characters except the tab, marks that turn the direction of writing, separators of lines, lone surrogates.
_ODD = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_COLOUR = re.compile(r"(\x1b\[[0-9;:]*m)")
_RESET = "\x1b[0m"


def clean(text: str, *, colours: bool = False) -> str:
    """One line of foreign text that cannot rewrite the terminal; with `colours`, its colours are kept.

    Of a progress bar (`\\r`) the last piece is left. Other control characters are shown as `\\x07`.
    """
    if _ODD.search(text) is None:
        return text
    if not colours:
        return _clean_piece(text)
    parts = _COLOUR.split(text.rstrip("\r"))
    kept = "".join(part if at % 2 else _clean_piece(part) for at, part in enumerate(parts))
    return kept + _RESET if len(parts) > 1 else kept


def _clean_piece(text: str) -> str:
    return _ODD.sub(_show_odd, plain_line(text))


def _show_odd(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def show_moment(moment: str) -> str:
    """An RFC 3339 moment in UTC, in whole seconds."""
    return f"{moment[:19]}Z"


def show_age(moment: str | None, now: datetime) -> str:
    """How long ago something was: `8 seconds`, `3 hours`; `-` for never."""
    if not moment:
        return "-"
    return show_seconds((now - read_moment(moment)).total_seconds())


def read_moment(moment: str) -> datetime:
    """An RFC 3339 moment as the server writes it."""
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).astimezone(UTC)


def show_seconds(seconds: float) -> str:
    """A length of time in its largest whole unit; clocks that differ never give a negative one."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return plural(int(seconds // length), unit)
    return plural(max(0, int(seconds)), "second")


def plural(count: int, noun: str) -> str:
    """`1 file`, `6 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def show_gib(size: int | None) -> str:
    """Bytes in GiB, one decimal; N/A when not known."""
    return "N/A" if size is None else f"{size / 2**30:.1f}"


def show_number(value: float | None) -> str:
    """One decimal; N/A when not known."""
    return "N/A" if value is None else f"{value:.1f}"


def show_parameters(parameters: Mapping[str, str]) -> str:
    """`epochs=20, lr=0.001`."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `right` aligns numbers.

    When the terminal is narrow, a column that `shrinks` is shortened, and one that `folds` goes on in further lines.
    """

    title: str
    right: bool = False
    shrinks: bool = False
    folds: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Plain lines, the titles first. `width` None: as wide as it is. The caller cleans the cells.

    A table that is too wide gets titles of several lines, then shorter gaps, then narrower columns that may be that.
    """
    titles = [[column.title] for column in columns]
    gap = 2
    widths = _measure(titles, rows)
    if width is not None and _total(widths, gap) > width:
        needed = _measure([[] for _ in columns], rows)
        titles = [_fold(column.title, needed[at]) for at, column in enumerate(columns)]
        widths = _measure(titles, rows)
        gap = 2 if _total(widths, gap) <= width else 1
        for at, column in enumerate(columns):
            if column.shrinks or column.folds:
                widths[at] = max(8, widths[at] - max(0, _total(widths, gap) - width))
        rows = [part for row in rows for part in _unfold(columns, widths, row)]
    height = max(len(title) for title in titles)
    heads = zip(*([""] * (height - len(title)) + title for title in titles), strict=True)
    return [_line(columns, widths, row, " " * gap) for row in (*heads, *rows)]


def _unfold(columns: Sequence[Column], widths: Sequence[int], row: Sequence[str]) -> list[tuple[str, ...]]:
    """A row as the lines that its longest cell needs."""
    cells = [
        textwrap.wrap(cell, width, break_on_hyphens=False) if column.folds and len(cell) > width else [cell]
        for column, width, cell in zip(columns, widths, row, strict=True)
    ]
    return list(zip_longest(*cells, fillvalue=""))


def _fold(title: str, width: int) -> list[str]:
    """A title in lines that are no wider than its column needs to be."""
    longest = max(len(word) for word in title.split())
    return textwrap.wrap(title, max(width, longest), break_long_words=False, break_on_hyphens=False)


def _measure(titles: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, ("", *title, *(row[at] for row in rows)))) for at, title in enumerate(titles)]


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def _line(columns: Sequence[Column], widths: Sequence[int], row: Sequence[str], gap: str) -> str:
    cells = []
    for column, width, cell in zip(columns, widths, row, strict=True):
        short = cell if len(cell) <= width else cell[: width - 1] + "…"
        cells.append(short.rjust(width) if column.right else short.ljust(width))
    return gap.join(cells).rstrip()


def fields(rows: Sequence[tuple[str, Any]]) -> list[str]:
    """`Name: value` lines; rows without a value are left out."""
    return [f"{name}: {value}" for name, value in rows if value not in (None, "")]
