"""Broken files: the exact position and sentence of every problem (`broken.txt`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.spec.config.loader import check_config

TABLE = Path(__file__).with_name("broken.txt")


def _cases() -> list[tuple[str, str, list[str]]]:
    found = []
    for block in TABLE.read_text(encoding="utf-8").split("\n===== ")[1:]:
        title, _, rest = block.partition("\n")
        text, _, expected = rest.partition("\n>>>>>\n")
        found.append((title, f"{text}\n" if text else "", expected.strip("\n").split("\n")))
    return found


CASES = _cases()


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_problem_has_its_position_and_sentence(text: str, expected: list[str]) -> None:
    told = [str(problem).removeprefix("riseml.yml:") for problem in check_config(text).problems]
    first = [lines[0] + (" ..." if len(lines) > 1 else "") for lines in (problem.split("\n") for problem in told)]
    assert first == expected


def test_the_table_is_large_and_its_names_are_unique() -> None:
    assert len(CASES) >= 120
    assert len({title for title, _, _ in CASES}) == len(CASES)
