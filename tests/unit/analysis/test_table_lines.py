"""The lines of a table: groups in the order of their first experiments, and what they show of different values."""

from __future__ import annotations

import math

import pytest

from riseml.analysis.rows import FIXED, ResultRow, Value
from riseml.analysis.table_lines import GroupCell, list_lines, summarize

ROWS = [
    ResultRow("7.2", "FINISHED", "", (7, 2), {"lr": "0.1"}),
    ResultRow("4", "FAILED", "", (4, 0), {"lr": "0.1"}),
    ResultRow("7.1", "FINISHED", "", (7, 1), {"lr": "0.2"}),
    ResultRow("5", "FAILED", "", (5, 0)),
]


def read_lr(row: ResultRow) -> Value:
    return row.parameters.get("lr")


def test_without_groups_each_experiment_is_a_line() -> None:
    assert [line.rows[0].name for line in list_lines(ROWS, {}, ())] == ["7.2", "4", "7.1", "5"]


def test_a_set_is_a_line_where_its_first_member_is_and_opens() -> None:
    closed = list_lines(ROWS, {"set": FIXED["set"]}, ())
    assert [(line.group, len(line.rows)) for line in closed] == [('["7"]', 2), ("", 1), ("", 1)]
    opened = list_lines(ROWS, {"set": FIXED["set"]}, ['["7"]', '["of nobody"]'])
    assert [(line.rows[0].name, line.is_open, line.is_inside) for line in opened] == [
        ("7.2", True, False),
        ("7.2", False, True),
        ("7.1", False, True),
        ("4", False, False),
        ("5", False, False),
    ]


def test_several_columns_group_and_a_missing_value_is_a_group() -> None:
    lines = list_lines(ROWS, {"state": FIXED["state"], "lr": read_lr}, ())
    assert [(line.group, len(line.rows)) for line in lines] == [
        ('["FINISHED", "0.1"]', 1),
        ('["FAILED", "0.1"]', 1),
        ('["FINISHED", "0.2"]', 1),
        ('["FAILED", null]', 1),
    ]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (["a", "a"], GroupCell("a")),
        ([2.0, 2.0], GroupCell(2.0)),
        ([None, None], GroupCell(None)),
        ([1.0, 2.0, 6.0], GroupCell(3.0, is_mixed=True)),
        ([1.0, None, 6.0], GroupCell(3.5, is_mixed=True)),
        (["a", None], GroupCell("a", is_mixed=True)),
        (["a", "b", "b"], GroupCell("2 values", is_mixed=True)),
        ([1.0, "a"], GroupCell("2 values", is_mixed=True)),
        ([1.0, math.inf], GroupCell("2 values", is_mixed=True)),
    ],
)
def test_a_group_shows_what_is_the_same_a_mean_or_how_many(values: list[Value], shown: GroupCell) -> None:
    rows = [ResultRow(str(at), "FINISHED", "", (at, 0)) for at in range(len(values))]
    assert summarize(rows, lambda row: values[row.number[0]]) == shown
