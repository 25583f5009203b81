"""Tables for papers and notes: LaTeX with booktabs, and Markdown. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from riseml.base.records import dataclass
from riseml.cli.output.text import format_metric

_MISSING = "-"
_LATEX_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    # LaTeX takes a bracket or an asterisk at the beginning of a row for an argument of the `\\` or `\midrule` before
    # it: with `[64, 128]` there it never ends.
    "[": "{[}",
    "*": "{*}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_MARKDOWN_SIGNS = re.compile(r"[\\`*\[\]<>|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LATEX_DASHES = re.compile(r"-(?=-)")  # LaTeX would join two into a longer dash
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_NUMBER = re.compile(r"(?P<sign>-?)(?P<mantissa>[0-9.]+)(?:e(?P<exponent>[-+][0-9]+))?")


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table whose numbers are still numbers."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]  # a text stays as it is written
    bold: frozenset[tuple[int, int]] = field(default_factory=frozenset)  # row and column of the best values
    digits: int | None = None  # of each number; None: six at most, without zeros at the end


def list_latex(table: PaperTable) -> list[str]:
    """Return the table for LaTeX; it needs `\\usepackage{booktabs}`."""
    columns = "".join("r" if is_right else "l" for is_right in _find_right(table))
    return [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _join_latex(map(escape_latex, table.titles)),
        r"\midrule",
        *(_join_latex(cells) for cells in _show_cells(table, escape_latex, _show_latex_number)),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def list_markdown(table: PaperTable) -> list[str]:
    """Return the table as GitHub and most programs read Markdown."""
    marks = ("---:" if is_right else "---" for is_right in _find_right(table))
    rows = _show_cells(table, escape_markdown, _show_markdown_number)
    return [_join_markdown(cells) for cells in (map(escape_markdown, table.titles), marks, *rows)]


def escape_latex(text: str) -> str:
    """Return a text that LaTeX prints as it is, on one line."""
    escaped = "".join(_LATEX_SIGNS.get(sign, sign) for sign in _BREAKS.sub(" ", text))
    return _LATEX_DASHES.sub("-{}", escaped)


def escape_markdown(text: str) -> str:
    """Return a text that a cell of Markdown shows as it is, on one line."""
    return _MARKDOWN_SIGNS.sub(lambda match: f"\\{match[0]}", _BREAKS.sub(" ", text))


def format_digits(value: float, digits: int) -> str:
    """Return a number with exactly so many significant digits, so that a column reads alike. Digits before the point
    are never rounded away.

    Example:
        >>> [format_digits(value, 3) for value in (0.98, 1.0, 1448.4, 1e-5)]
        ['0.980', '1.00', '1448', '1.00e-05']
    """
    if not math.isfinite(value):
        return format_metric(value)
    if 10 ** (digits - 1) <= abs(value) < 1e15:
        return f"{value:.0f}"
    return f"{value:#.{digits}g}".removesuffix(".")


def _find_right(table: PaperTable) -> list[bool]:
    """Return which columns have numbers, and stand at the right."""
    columns = [[row[at] for row in table.rows if row[at] is not None] for at in range(len(table.titles))]
    return [bool(cells) and not any(isinstance(cell, str) for cell in cells) for cells in columns]


def _show_cells(
    table: PaperTable, escape: Callable[[str], str], show_number: Callable[[str, bool], str]
) -> list[list[str]]:
    digits = [_choose_digits(table, place) for place in range(len(table.titles))]
    return [
        [
            _show_cell(cell, escape)
            if isinstance(cell, str | None)
            else show_number(_format_number(cell, digits[place]), (at, place) in table.bold)
            for place, cell in enumerate(row)
        ]
        for at, row in enumerate(table.rows)
    ]


def _show_cell(cell: str | None, escape: Callable[[str], str]) -> str:
    return _MISSING if cell is None else escape(cell)


def _format_number(value: float, digits: int | None) -> str:
    return format_metric(value) if digits is None else format_digits(value, digits)


def _choose_digits(table: PaperTable, place: int) -> int | None:
    """Return the digits of a column; a column of whole numbers, such as counts, has all of them."""
    numbers = [cell for row in table.rows if not isinstance(cell := row[place], str | None)]
    is_whole = all(not math.isfinite(number) or number == int(number) for number in numbers)
    return None if is_whole else table.digits


def _show_latex_number(text: str, bold: bool) -> str:  # noqa: FBT001  # one of two functions of a table
    """Return a number; a minus and a power of ten need the mathematics of LaTeX, and `nan` is no number."""
    match = _NUMBER.fullmatch(text)
    if match is None or not (match["sign"] or match["exponent"]):
        return rf"\textbf{{{text}}}" if bold else text
    power = "" if match["exponent"] is None else rf"\times 10^{{{int(match['exponent'])}}}"
    number = f"{match['sign']}{match['mantissa']}{power}"
    return rf"$\mathbf{{{number}}}$" if bold else f"${number}$"


def _show_markdown_number(text: str, bold: bool) -> str:  # noqa: FBT001  # one of two functions of a table
    return f"**{text}**" if bold else text


def _join_latex(cells: Iterable[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _join_markdown(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
