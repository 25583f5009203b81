"""The table, its JSON and the page: they show what is wrong, and the page shows the last result."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.chaos import page
from tests.chaos.catalogue import all_faults
from tests.chaos.ledger import Tally
from tests.chaos.table import (
    LEAST_INJECTIONS,
    LEAST_KINDS,
    format_markdown,
    print_table,
    read_json,
    sum_rows,
    write_json,
)

FINE = Tally(3, 2, 2)
WRONG = {
    "a verdict": Tally(3, 2, 1),
    "a leftover": Tally(3, 2, 2, left=1),
    "a lost line": Tally(3, 2, 2, lost=1),
    "a repeated line": Tally(3, 2, 2, repeated=1),
    "a note": Tally(3, 2, 2, notes=("odd",)),
    "nothing done": Tally(0, 2, 2),
    "nothing run": Tally(3, 0, 0),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_tally_is_not_clean(name: str) -> None:
    assert FINE.clean
    assert not WRONG[name].clean
    assert name in ("nothing done", "nothing run") or not (FINE + WRONG[name]).clean


def test_the_table_has_80_columns_and_every_sum(tmp_path: Path) -> None:
    rows = {"kill -9 before and after each engine call": {"docker": FINE, "process": WRONG["a note"]}}
    out = io.StringIO()
    print_table(rows, Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    (row,) = [line for line in lines if line.strip().startswith("kill -9")]
    assert row.split()[-5:] == ["6", "4/4", "0", "0", "0"]
    assert "wrong odd" in lines
    write_json(rows, tmp_path / "chaos.json")
    assert read_json(tmp_path / "chaos.json") == rows


def test_every_name_fits_the_table() -> None:
    names = [fault.name for fault in all_faults()]
    assert len(set(names)) == len(names) >= LEAST_KINDS
    assert max(map(len, names)) <= 46


def test_the_page_shows_the_last_result_and_nothing_in_it_is_wrong() -> None:
    rows = read_json(page.RESULT)
    text = page.PAGE.read_text()
    assert page.replace_table(text, format_markdown(rows)) == text, "run `python -m tests.chaos.page`"
    assert set(rows) <= {fault.name for fault in all_faults()}, (
        "the page has a row of a removed fault: run `make chaos`"
    )
    assert [name for name, found in rows.items() for tally in found.values() if not tally.clean] == []
    assert len(rows) >= LEAST_KINDS
    assert sum_rows(rows).injected >= LEAST_INJECTIONS


def test_a_page_without_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place"):
        page.replace_table("# nothing here\n", "| a |")
