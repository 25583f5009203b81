"""The result of the last `make chaos` in docs/reliability.md: `python -m tests.chaos.page`."""

from __future__ import annotations

import re
from pathlib import Path

from tests.chaos.table import markdown, read_json

DOCS = Path(__file__).parents[2] / "docs"
PAGE, RESULT = DOCS / "reliability.md", DOCS / "chaos.json"

_BETWEEN = re.compile(r"(?<=<!-- written by make chaos -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def write(page: str, table: str) -> str:
    """The page with this table in its place.

    Raises:
        ValueError: the page has no such place.
    """
    if not _BETWEEN.search(page):
        raise ValueError("the page has no place for the table")
    return _BETWEEN.sub(lambda _: f"\n{table}\n", page)


if __name__ == "__main__":
    PAGE.write_text(write(PAGE.read_text(), markdown(read_json(RESULT))))
