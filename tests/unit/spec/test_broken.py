"""Broken files: the exact position and sentence of every problem (`broken.txt`)."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import check_config
from tests.unit.spec.broken_table import read_cases

CASES = read_cases("broken.txt")


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_problem_has_its_position_and_sentence(text: str, expected: list[str]) -> None:
    told = [str(problem).removeprefix("riseml.yml:") for problem in check_config(text).problems]
    first = [lines[0] + (" ..." if len(lines) > 1 else "") for lines in (problem.split("\n") for problem in told)]
    assert first == expected


def test_the_table_is_large_and_its_names_are_unique() -> None:
    assert len(CASES) >= 120
    assert len({title for title, _, _ in CASES}) == len(CASES)
