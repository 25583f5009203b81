"""Tables as CSV (RFC 4180), with all digits, and safe in a spreadsheet. Pure."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence

from riseml.base.control_characters import escape_controls

Cell = str | float | None

# A spreadsheet computes a cell that begins so; in some countries a semicolon or a tab begins a cell, too. A text with
# apostrophes before such a sign gets one more, so that two texts are never the same cell.
_SIGNS = "=+@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b-"  # ASCII, of full width, and small ones
_FORMULA = re.compile(rf"(?:^|(?<=[;\t\n]))(?='*+(?:\t|[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*+[{_SIGNS}]))")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(inf|nan)", re.ASCII)


def list_csv_lines(titles: Iterable[str], rows: Iterable[Sequence[Cell]]) -> list[str]:
    """Return the lines of a table, the titles first. A text with line breaks takes several lines, in quotes.

    Example:
        >>> list_csv_lines(["id", "cost"], [["1.10", -0.5], ["=1+1", None]])
        ['id,cost', '1.10,-0.5', "'=1+1,"]
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([show_cell(title) for title in titles])
    writer.writerows([show_cell(cell) for cell in row] for row in rows)
    return text.getvalue().split("\n")[:-1]


def show_cell(value: Cell) -> str:
    """Return the content of a cell. A text that a spreadsheet would compute gets an apostrophe; a number does not."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value if _NUMBER.fullmatch(value) else escape_controls(_FORMULA.sub("'", value))
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else repr(value)
