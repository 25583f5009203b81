"""The order and the ranks of results, and the metric that says what is good."""

from __future__ import annotations

import pytest

from riseml.analysis.ranking import (
    Objective,
    choose_objective,
    list_sort_notes,
    parse_sort,
    rank_by_fronts,
    rank_rows,
    sort_by_rank,
    sort_rows,
)
from riseml.analysis.rows import Columns
from riseml.spec.config.types import Goal, ValueKind, ValueRule
from tests.unit.analysis.result_rows import COLUMNS, ROWS, names

BEST = Objective("accuracy", Goal.MAXIMIZE)
LAST = Objective("accuracy", Goal.MAXIMIZE, ValueRule(ValueKind.LAST))


@pytest.mark.parametrize(
    ("sort", "wanted"),
    [
        ("", ["1", "2", "3", "4", "5", "10"]),
        ("id", ["1", "2", "3", "4", "5", "10"]),
        ("state,-id", ["4", "10", "3", "2", "1", "5"]),
        ("-lr", ["1", "10", "2", "3", "4", "5"]),  # a text comes behind all numbers
        ("layers", ["10", "5", "1", "2", "3", "4"]),
        ("-accuracy.max", ["4", "2", "1", "10", "3", "5"]),
        ("state,-time", ["4", "10", "3", "2", "1", "5"]),
    ],
)
def test_rows_are_sorted_and_those_without_a_value_come_last(sort: str, wanted: list[str]) -> None:
    assert names(sort_rows(ROWS[::-1], parse_sort(sort), COLUMNS)) == wanted


def test_an_order_of_numbers_and_texts_is_said() -> None:
    (note,) = list_sort_notes(ROWS, parse_sort("-lr,opt,time"), COLUMNS)
    assert note == "lr mixes numbers and texts: it is a text in 1 of 6 experiments ('auto'); the numbers come first"


def test_ranks_leave_out_what_failed_and_what_has_no_value() -> None:
    ranks = rank_rows(ROWS, BEST)
    assert ranks == {"144.1": 1, "144.10": 1}, "144.2 has the largest accuracy, and ended with nan"
    assert names(sort_by_rank(ROWS, ranks)) == ["1", "10", "2", "3", "4", "5"]
    rows = [row._replace(value=0.1) if row.name == "144.1" else row for row in ROWS]
    assert rank_rows(rows, Objective("accuracy", Goal.MINIMIZE)) == {"144.1": 1, "144.10": 2}
    killed = [row._replace(state="KILLED") if row.name == "144.1" else row for row in ROWS]
    assert rank_rows(killed, BEST) == {"144.10": 1}


def test_several_objectives_rank_by_fronts() -> None:
    goals = [BEST, Objective("loss", Goal.MINIMIZE)]
    scores = [(0.9, 2.0), (0.9, 1.0), (0.5, 0.5), (0.99, 0.1), (0.4, 3.0)]
    rows = [
        row._replace(scores={"accuracy": accuracy, "loss": loss})
        for row, (accuracy, loss) in zip(ROWS, scores, strict=False)
    ]
    assert rank_by_fronts(rows, goals) == {"144.1": 2, "144.2": 1, "144.3": 1, "144.5": 3}, "144.4 has failed"
    lacking = [row._replace(scores={"accuracy": 1.0}) if row.name == "144.2" else row for row in rows]
    assert rank_by_fronts(lacking, goals) == {"144.1": 1, "144.3": 1, "144.5": 2}


def test_the_columns_of_several_objectives_are_the_values_that_rank() -> None:
    columns = Columns(frozenset(), frozenset({"accuracy", "loss"}), {"accuracy": Goal.MAXIMIZE, "loss": Goal.MINIMIZE})
    row = ROWS[0]._replace(scores={"accuracy": 0.25})
    assert columns.find_reader("accuracy")(row) == 0.25
    assert columns.find_reader("loss")(row) is None
    assert columns.find_reader("accuracy.max")(row) == 0.9


@pytest.mark.parametrize(
    ("sort", "known", "wanted"),
    [
        ("", None, None),
        ("", BEST, BEST),
        ("time", BEST, BEST),
        ("time", None, None),
        ("-accuracy", None, BEST),
        ("accuracy.last,time", None, Objective("accuracy", Goal.MINIMIZE, ValueRule(ValueKind.LAST))),
        ("-accuracy.max", LAST, LAST),
        ("accuracy", BEST, BEST),
    ],
)
def test_the_first_metric_of_the_order_says_what_is_good(
    sort: str, known: Objective | None, wanted: Objective | None
) -> None:
    assert choose_objective(parse_sort(sort), frozenset({"accuracy"}), known) == wanted


def test_a_name_of_a_parameter_and_a_metric_sorts_by_the_parameter_and_keeps_the_goal_of_the_set() -> None:
    known, both = Objective("accuracy", Goal.MAXIMIZE), frozenset({"lr", "accuracy"})
    assert choose_objective(parse_sort("lr"), both, known, frozenset({"lr"})) == known
    assert choose_objective(parse_sort("lr"), both, None, frozenset({"lr"})) is None
    wanted = Objective("lr", Goal.MINIMIZE)
    assert choose_objective(parse_sort("metrics.lr"), both, known, frozenset({"lr"})) == wanted
