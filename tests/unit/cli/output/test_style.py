"""Colours of states, and the names of states in tables."""

from __future__ import annotations

import pytest

from riseml.cli.output.style import paint, paint_state


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("FAILED", "\x1b[1;31mFAILED\x1b[0m"),
        ("FINISHED", "\x1b[1;32mFINISHED\x1b[0m"),
        ("PENDING", "PENDING"),
    ],
)
def test_a_state_has_its_colour(state: str, shown: str) -> None:
    assert paint_state(state, state, colour=True) == shown
    assert paint_state(state, state, colour=False) == state


def test_nothing_is_painted_without_a_colour_or_a_text() -> None:
    assert paint("error:", "", colour=True) == "error:"
    assert paint("", "1;31", colour=True) == ""
