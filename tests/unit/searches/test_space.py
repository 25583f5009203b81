"""Parameters as distributions, and values as texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.model import SearchPlan, Trial
from riseml.searches.propose import Proposer
from riseml.searches.space import count_points, list_points, make_point, make_space, read_point
from riseml.spec.config.types import Distribution, Parameter, Scale, SearchMethod
from tests.support.searches import DROPOUT, EPOCHS, LAYERS, LR, UNITS, make_search


def test_a_parameter_with_one_value_is_not_searched() -> None:
    assert list(make_space((LR, UNITS, DROPOUT, LAYERS, EPOCHS))) == ["lr", "units", "dropout", "layers"]


@pytest.mark.parametrize(
    ("parameter", "value", "text"),
    [
        (LR, 0.000123456789, "0.000123457"),
        (LR, 1.23456789e-5, "1.23457e-5"),
        (LR, 0.1, "0.1"),
        (UNITS, 48, "48"),
        (DROPOUT, 0.30000000000000004, "0.3"),
        (Parameter("third", (), Distribution(Scale.UNIFORM, 0.0, 1 / 3)), 1 / 3, "0.333333"),
        (LAYERS, "3", "3"),
    ],
)
def test_values_are_texts_that_people_read(parameter: Parameter, value: object, text: str) -> None:
    assert make_point((parameter,), {parameter.name: value}) == ((parameter.name, text),)


@given(st.floats(1e-5, 0.1), st.integers(1, 16), st.integers(0, 5), st.sampled_from(LAYERS.values))
def test_a_point_is_read_as_it_was_written(lr: float, units: int, dropout: int, layers: str) -> None:
    parameters = (LR, UNITS, DROPOUT, LAYERS, EPOCHS)
    values = {"lr": lr, "units": 16 * units, "dropout": dropout * 0.1, "layers": layers}
    point = make_point(parameters, values)
    assert make_point(parameters, read_point(parameters, point)) == point
    assert 1e-5 <= float(dict(point)["lr"]) <= 0.1, "rounding leaves no bound"


def test_points_with_steps_are_counted_and_listed() -> None:
    parameters = (UNITS, DROPOUT, LAYERS, EPOCHS)
    assert count_points(parameters) == 16 * 6 * 3
    points = list(list_points(parameters) or ())
    assert len(set(points)) == 16 * 6 * 3
    assert points[0] == (("units", "16"), ("dropout", "0.0"), ("layers", "2"), ("epochs", "10"))
    assert list_points((LR,)) is None


def test_a_step_that_misses_max_ends_before_it() -> None:
    parameter = Parameter("a", (), Distribution(Scale.INT, 1, 10, 4))
    assert [dict(point)["a"] for point in list_points((parameter,)) or ()] == ["1", "5", "9"]


def test_whole_numbers_by_magnitude_are_spread_over_the_magnitudes() -> None:
    parameter = Parameter("batch", (), Distribution(Scale.INT, 1, 1024, None, by_magnitude=True))
    plan = SearchPlan(make_search(method=SearchMethod.RANDOM), (parameter,))
    proposer = Proposer(plan)
    trials: list[Trial] = []
    for number in range(1, 41):
        point = proposer.propose_point(trials)
        assert point is not None
        trials.append(Trial(number, number, point, 0))
    values = [int(dict(trial.point)["batch"]) for trial in trials]
    assert all(1 <= value <= 1024 for value in values)
    assert 10 <= sum(value < 32 for value in values) <= 30, "as many below the middle magnitude as above it"
    assert count_points((parameter,)) == 1024
    assert read_point((parameter,), trials[0].point) == {"batch": values[0]}
