"""How wide text is on a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from riseml.cli.output.widths import cut_to_width, measure_width, shorten_to_width


@given(st.text(), st.integers(0, 30))
def test_cutting_keeps_the_width(text: str, width: int) -> None:
    cut = cut_to_width(text, width)
    assert text.startswith(cut)
    assert measure_width(cut) <= width
    assert measure_width(shorten_to_width(text, width + 1)) <= width + 1
