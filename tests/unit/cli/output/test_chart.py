"""Charts before they are drawn: the order of points, and round numbers on the axes."""

from __future__ import annotations

import pytest

from riseml.cli.output.chart import choose_ticks, list_y_ticks, make_curves, make_scatter
from tests.unit.cli.result_rows import ROWS, make_history


def test_values_of_one_step_stay_in_their_order() -> None:
    history = make_history(1, 0.5, 0.9, 0.2)
    history["buckets"][2]["first_step"] = history["buckets"][2]["last_step"] = 20
    (series,) = make_curves("accuracy", [(ROWS[0], history)]).series
    assert series.points == ((10, 0.5), (20, 0.9), (20, 0.2))


def test_axes_have_round_numbers() -> None:
    assert choose_ticks(0, 1, 6) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert choose_ticks(-5, -1, 8) == [-5, -4, -3, -2, -1]
    assert choose_ticks(0, 3e-13, 4) == [0, 1e-13, 2e-13, 3e-13]
    assert make_scatter("a", "lr", [("1e-5", 0.2), ("1e-1", 0.8)]).x_log
    assert not make_scatter("a", "lr", [("-1", 0.2), ("100", 0.8)]).x_log


@pytest.mark.parametrize(
    ("texts", "names"),
    [(["2.1", "2.10"], ("2.1", "2.10")), (["01", "1"], ("01", "1")), (["0.001", "1e-3"], ()), (["1", "2"], ())],
)
def test_texts_that_differ_have_places_of_their_own(texts: list[str], names: tuple[str, ...]) -> None:
    assert make_scatter("a", "v", [(text, 0.5) for text in texts]).x_names == names


@pytest.mark.parametrize(
    ("low", "high", "names"),
    [
        (1.0, 1e35, ["0", "1.7e+34", "3.3e+34", "5.0e+34", "6.7e+34", "8.3e+34", "1.0e+35"]),
        (1e-11, 3.5e-11, ["1.0e-11", "1.4e-11", "1.8e-11", "2.2e-11", "2.7e-11", "3.1e-11", "3.5e-11"]),
        (-3e30, 3e30, ["-3.0e+30", "-2.0e+30", "-1.0e+30", "0", "1.0e+30", "2.0e+30", "3.0e+30"]),
        (2e7, 2.6e7, ["2.0e+07", "2.1e+07", "2.2e+07", "2.3e+07", "2.4e+07", "2.5e+07", "2.6e+07"]),
        (2e7, 2.06e7, ["2.00e+07", "2.01e+07", "2.02e+07", "2.03e+07", "2.04e+07", "2.05e+07", "2.06e+07"]),
        (1e9, 1e9 + 3, []),  # with an exponent they would have as many digits
        (0.1, 0.9, []),
        (-1e6, 5e6, []),
    ],
)
def test_long_numbers_of_the_y_axis_have_an_exponent(low: float, high: float, names: list[str]) -> None:
    assert [name for _, name in list_y_ticks(low, high)] == names
