"""Values over time as bars of one line."""

from __future__ import annotations

import pytest

from riseml.cli.output.sparklines import draw_sparkline


@pytest.mark.parametrize(
    ("values", "width", "shown"),
    [
        ([0, 1, 2, None, 8], 6, " ▁▂▃ █"),
        ([], 3, "   "),
        ([0, 0], 2, "▁▁"),
        ([0, 8, 8, 8], 2, "▅█"),
        ([None, None, 4, None], 2, " █"),
    ],
)
def test_a_sparkline(values: list[float | None], width: int, shown: str) -> None:
    assert draw_sparkline(values, width) == shown


def test_a_sparkline_reaches_to_what_was_asked_for() -> None:
    assert draw_sparkline([50.0], 1, 100.0) == "▅"
