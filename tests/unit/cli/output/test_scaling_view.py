"""The scaling of a training as a table."""

from __future__ import annotations

import pytest

from riseml.analysis.scaling import Scaling, ScalingRow
from riseml.cli.output.scaling_view import list_scaling
from riseml.cli.output.style import Style
from tests.unit.cli.result_rows import BAD


@pytest.mark.parametrize("width", [40, 80, 200, None])
def test_the_scaling_table_fits(width: int | None) -> None:
    metrics = {f"{BAD}metric-{number}": 1.0 for number in range(20)}
    scaling = Scaling("", (ScalingRow(1, 1, 5.0, None, None, None, metrics),), 0)
    lines = list_scaling(scaling, Style(width=width))
    assert all("\x1b" not in line for line in lines)
    if width is not None and width > 40:
        assert max(map(len, lines[:2])) <= width
    assert list_scaling(Scaling("", (), 3), Style()) == ["No experiment has finished: there is nothing to compare."]
