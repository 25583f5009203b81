"""Charts before they are drawn: the order of points, and round numbers on the axes."""

from __future__ import annotations

from riseml.cli.output.chart import choose_ticks, make_curves, make_scatter
from tests.unit.cli.test_results import ROWS, make_history


def test_values_of_one_step_stay_in_their_order() -> None:
    history = make_history(1, 0.5, 0.9, 0.2)
    history["buckets"][2]["first_step"] = history["buckets"][2]["last_step"] = 20
    (series,) = make_curves("accuracy", [(ROWS[0], history)]).series
    assert series.points == ((10, 0.5), (20, 0.9), (20, 0.2))


def test_axes_have_round_numbers() -> None:
    assert choose_ticks(0, 1, 6) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert choose_ticks(-5, -1, 8) == [-5, -4, -3, -2, -1]
    assert make_scatter("a", "lr", [("1e-5", 0.2), ("1e-1", 0.8)]).x_log
    assert not make_scatter("a", "lr", [("-1", 0.2), ("100", 0.8)]).x_log
