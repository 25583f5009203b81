"""Errors, and problems of riseml.yml with the line that has them."""

from __future__ import annotations

import pytest

from riseml.base.errors import UsageError
from riseml.cli.output.problem_lines import describe_error, describe_problems
from riseml.cli.output.widths import measure_width
from riseml.spec.yaml.problems import Problem, Severity


def test_a_problem_shows_its_line_and_a_caret() -> None:
    source = "project: a\ntrain:\n  rum: x\n"
    problem = Problem("riseml.yml", 3, 3, "train.rum", "unknown key", "did you mean `run`?")
    assert list(describe_problems([problem], "riseml.yml", source)) == [
        "riseml.yml:3:3: error: train.rum: unknown key",
        "    3 |   rum: x",
        "      |   ^",
        "  hint: did you mean `run`?",
    ]


@pytest.mark.parametrize(("line_number", "column"), [(0, 1), (9, 1), (1, 500), (1, 1), (2, 3000)])
def test_any_position_can_be_shown(line_number: int, column: int) -> None:
    problem = Problem("f", line_number, column, "", "what", "", Severity.WARNING)
    shown = list(describe_problems([problem], "f", "a\tb\x1b[31m\n" + "x" * 4000))
    assert all(len(one) < 100 for one in shown)
    assert "\x1b" not in "".join(shown)


def test_a_problem_of_an_option_has_no_line() -> None:
    problem = Problem("-p lr=x", 1, 1, "train.parameters.lr", "no number", "")
    assert list(describe_problems([problem], "riseml.yml", "project: a")) == [
        "-p lr=x: error: train.parameters.lr: no number"
    ]


def test_a_caret_stands_below_its_character_also_after_wide_ones() -> None:
    problem = Problem("riseml.yml", 1, 6, "", "no such key", "")
    _, quoted, caret = describe_problems([problem], "riseml.yml", "日本語: x")
    assert measure_width(quoted[: quoted.index("x")]) == caret.index("^")


def test_an_error_is_one_line_and_its_hint() -> None:
    assert describe_error(UsageError("what\nand more", "do\x1b[2J this")) == [
        "error: what",
        "  and more",
        "hint: do this",
    ]
