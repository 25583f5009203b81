"""`python -m tests.chaos.page`: write the result of the last `make chaos` into docs/reliability.md."""

from __future__ import annotations

import re
from pathlib import Path

from tests.chaos.table import format_markdown, read_json

DOCS = Path(__file__).parents[2] / "docs"
PAGE, RESULT = DOCS / "reliability.md", DOCS / "chaos.json"

_BETWEEN = re.compile(r"(?<=<!-- written by make chaos -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def replace_table(page: str, table: str) -> str:
    """Return the page with this table between its marks.

    Raises:
        ValueError: the page has no marks.
    """
    if not _BETWEEN.search(page):
        raise ValueError("the page has no place for the table")
    return _BETWEEN.sub(lambda _: f"\n{table}\n", page)


if __name__ == "__main__":
    PAGE.write_text(replace_table(PAGE.read_text(), format_markdown(read_json(RESULT))))
