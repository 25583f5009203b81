"""Placeholders in lines of `run`, and the variables of parameters."""

from __future__ import annotations

import pytest

from riseml.spec.scalars.placeholders import find_placeholders, variable_name


@pytest.mark.parametrize(
    ("line", "placeholders"),
    [
        ("t {{lr}}", (("lr", 2, 8),)),
        ("{{ learning-rate }}{{a_1}}", (("learning-rate", 0, 19), ("a_1", 19, 26))),
        ("t {lr} {{1a}} {{a b}} {{}}", ()),
        ("{{{lr}}}", (("lr", 1, 7),)),
    ],
)
def test_placeholders_are_found_with_their_positions(line: str, placeholders: tuple[tuple[str, int, int], ...]) -> None:
    assert find_placeholders(line) == placeholders
    assert all(line[start:end].strip("{} ") == name for name, start, end in placeholders)


@pytest.mark.parametrize(("parameter", "variable"), [("lr", "LR"), ("learning-rate", "LEARNING_RATE"), ("a_B", "A_B")])
def test_a_parameter_becomes_a_variable(parameter: str, variable: str) -> None:
    assert variable_name(parameter) == variable
