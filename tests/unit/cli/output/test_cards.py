"""A table that a terminal is too narrow for becomes cards with the same cells."""

from __future__ import annotations

import re

import pytest

from riseml.cli.output.cards import build_cards
from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column
from riseml.cli.output.widths import measure_width

COLUMNS = (Column("ID"), Column("STATE", states=True), Column("PROJECT"), *map(Column, ("CPU", "MEM limit", "NET in")))
ROWS = [
    ["4.worker.10", "RUNNING", "a-project-with-a-long-name", "0.004/0.5 cores", "16 GiB", "1.21 KiB/s"],
    ["4.ps.1", "STARTING", "日本", "-/0.5 cores", "-", "-"],
]


def _drop_colours(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("colour", [False, True])
def test_every_cell_is_there_and_no_line_is_wider_than_the_terminal(width: int, *, colour: bool) -> None:
    painted = build_cards(COLUMNS, ROWS, 3, Style(colour, width))
    lines = [_drop_colours(line) for line in painted]
    assert all(measure_width(line) <= width for line in lines)
    text = "\n".join(lines)
    assert all(cell in text for row in ROWS for cell in row)
    assert all(column.title in text for column in COLUMNS[3:])
    assert (lines != painted) is colour
    assert lines == build_cards(COLUMNS, ROWS, 3, Style(width=width))


def test_a_pipe_gets_the_table() -> None:
    lines = build_cards(COLUMNS, ROWS, 3, Style())
    assert len(lines) == 3
    assert lines == build_cards(COLUMNS, ROWS, 3, Style(width=200))


def test_a_narrow_terminal_gets_one_amount_a_line() -> None:
    assert build_cards(
        COLUMNS[:2] + COLUMNS[3:], [["4.ps.1", "RUNNING", "0.5 cores", "16 GiB", "0 B/s"]], 2, Style(width=25)
    ) == [
        "4.ps.1  RUNNING",
        "  CPU        0.5 cores",
        "  MEM limit  16 GiB",
        "  NET in     0 B/s",
    ]
