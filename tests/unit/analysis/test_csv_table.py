"""Tables as CSV: any text comes back, and none of them is a formula."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.analysis.csv_table import list_csv_lines, show_cell
from riseml.cli.output.text import clean_lines

TEXTS = st.text(st.sampled_from("ab'=+-@;\t\n, \"1.\uff1d\u200b") | st.characters(exclude_categories=["Cc", "Cs"]))


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, ""),
        (-0.5, "-0.5"),
        (float("-inf"), "-inf"),
        (float("nan"), "nan"),
        (1e15, "1000000000000000.0"),
        (3.0, "3"),
        ("2.10", "2.10"),
        ("01", "01"),
        ("1e5", "1e5"),
        ("-0.50", "-0.50"),
        ("9007199254740993", "9007199254740993"),
        ("=1+1", "'=1+1"),
        ("'=1+1", "''=1+1"),
        ("-x", "'-x"),
        ("--fast", "'--fast"),
        ("+1 2", "'+1 2"),
        ("@home", "'@home"),
        ("a\n=1", "a\n'=1"),
        ("a\r=1", "a\\x0d=1"),
        ("\x1b[2J", "\\x1b[2J"),
    ],
)
def test_a_cell_is_the_text_or_the_number_as_it_is(value: str | float | None, cell: str) -> None:
    assert show_cell(value) == cell


def read_cell(cell: str) -> str:
    """Return the text of a cell: an apostrophe before a sign is one that riseml has put there."""
    signs = "=+@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b-"
    begin = rf"(?:^|(?<=[;\t\n]))'(?='*+(?:\t|[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*+[{signs}]))"
    return re.sub(begin, "", cell)


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_any_text_without_control_characters_comes_back(texts: list[str]) -> None:
    lines = list_csv_lines(["a"] * len(texts), [texts])
    printed = "\n".join(clean_lines(lines, colours=False)) + "\n"
    (_, cells) = csv.reader(io.StringIO(printed, newline=""))
    marks = "\u061c\u200e\u200f"  # are shown as escapes, as on every terminal
    assert [read_cell(cell) for cell, text in zip(cells, texts, strict=True) if not set(marks) & set(text)] == [
        text for text in texts if not set(marks) & set(text)
    ]
