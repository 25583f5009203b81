"""Mean curves with bands."""

from __future__ import annotations

import pytest

from riseml.cli.output.group_curves import make_group_curves
from riseml.cli.output.svg_plot import draw_svg
from tests.unit.cli.group_rows import BROKEN, STEADY
from tests.unit.cli.result_rows import make_history


def test_a_curve_is_the_mean_of_its_runs_and_the_band_holds_it() -> None:
    histories = [make_history(sub, 0.1 * sub, 0.2 * sub, 0.3 * sub) for sub in range(1, 6)]
    chart = make_group_curves("accuracy", [(STEADY, histories), (BROKEN, [make_history(6, 0.5, 0.6)])], ["lr"])
    first, second = chart.series
    assert (first.label, second.label) == ("lr=0.1 (n = 5) (best)", "lr==1 (n = 1)")
    assert [x for x, _ in first.points] == [10.0, 20.0, 30.0]
    assert first.points[0][1] == pytest.approx(0.3)
    assert all(low < y < high for (_, y), (_, low, high) in zip(first.points, first.band, strict=True))
    assert second.band == (), "one run has no band"
    assert draw_svg(chart).count("<polygon") == 1
