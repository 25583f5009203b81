"""The program that searches lines for patterns: one answer for each order, and no pattern that stops it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from riseml.store.metrics import pattern_program
from tests.support.waiting import DEADLINE


def ask(*orders: dict[str, Any]) -> list[Any]:
    """Return the answers of the program to these orders."""
    text = "".join(json.dumps({"seconds": 5.0, **order}) + "\n" for order in orders)
    program = [sys.executable, pattern_program.__file__]
    done = subprocess.run(program, input=text, capture_output=True, text=True, check=True, timeout=DEADLINE)
    assert done.stderr == ""
    return [json.loads(row) for row in done.stdout.splitlines()]


def test_each_order_has_its_answer_and_the_program_ends_with_its_input() -> None:
    loss = {"patterns": {"loss": "loss ([0-9.]+)"}, "lines": ["loss 0.5", "none", "loss 0.25"]}
    answer = {"found": [[0, "loss", "0.5"], [2, "loss", "0.25"]], "slow": []}
    assert ask(loss, {"patterns": {}, "lines": ["loss 0.5"]}, loss) == [answer, {"found": [], "slow": []}, answer]


@pytest.mark.parametrize(
    ("pattern", "line"),
    [("(", "a"), ("(a+)+$", "a" * 60 + "b"), ("(" * 5000 + ")" * 5000, "a"), ("(a{9999999999999})", "a")],
    ids=["broken", "catastrophic", "too deep", "too large"],
)
def test_a_pattern_that_cannot_be_searched_is_slow_and_stops_no_other(pattern: str, line: str) -> None:
    (answer,) = ask({"patterns": {"bad": pattern, "good": "(b?)$"}, "lines": [line, line]})
    assert answer["slow"] == ["bad"]
    assert [row[:2] for row in answer["found"]] == [[0, "good"], [1, "good"]]


def test_a_long_match_is_cut_and_an_empty_group_is_no_value() -> None:
    patterns = {"long": "(x+)", "missing": "y|(z)"}
    (answer,) = ask({"patterns": patterns, "lines": ["x" * 1000 + "y"]})
    assert answer["found"] == [[0, "long", "x" * 100]]
