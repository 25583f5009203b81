"""Which parameters are there, what their ends are, and which points are allowed."""

from __future__ import annotations

import pytest

from riseml.spec.config.conditions import (
    combine_values,
    find_circle,
    find_ends,
    list_constrained_metrics,
    list_defaults,
    measure_excess,
    meets_constraints,
    sort_parameters,
)
from riseml.spec.config.types import Distribution, Parameter, Scale
from riseml.spec.scalars.formulas import NoValue

MOMENTUM = Parameter("momentum", ("0.5", "0.9"), when=(("optimizer", ("sgd",)),), default="0")
NESTEROV = Parameter("nesterov", ("yes", "no"), when=(("momentum", ("0.9",)),))
OPTIMIZER = Parameter("optimizer", ("adam", "sgd"))


def test_a_parameter_comes_after_those_that_it_needs() -> None:
    units = Parameter("units", (), Distribution(Scale.INT, 1, 0, high_formula="{{layers}} * 64"))
    layers = Parameter("layers", ("2", "3"))
    ordered = sort_parameters((NESTEROV, units, MOMENTUM, layers, OPTIMIZER))
    assert [parameter.name for parameter in ordered] == ["optimizer", "momentum", "nesterov", "layers", "units"]


def test_parameters_that_need_each_other_are_found() -> None:
    circle = Parameter("optimizer", ("adam", "sgd"), when=(("nesterov", ("yes",)),))
    assert find_circle((NESTEROV, MOMENTUM, OPTIMIZER)) == ()
    assert find_circle((MOMENTUM, NESTEROV, circle)) == ("momentum", "optimizer", "nesterov", "momentum")
    assert [parameter.name for parameter in sort_parameters((MOMENTUM, NESTEROV, circle))]


def test_a_grid_has_each_combination_of_those_that_are_there_once() -> None:
    parameters = (NESTEROV, MOMENTUM, OPTIMIZER)
    points = list(combine_values(parameters, [parameter.values for parameter in parameters]))
    assert points == [
        (("optimizer", "adam"),),
        (("momentum", "0.5"), ("optimizer", "sgd")),
        (("nesterov", "yes"), ("momentum", "0.9"), ("optimizer", "sgd")),
        (("nesterov", "no"), ("momentum", "0.9"), ("optimizer", "sgd")),
    ]
    assert list_defaults(parameters, points[0]) == {"momentum": "0"}
    assert list_defaults(parameters, points[1]) == {}


def test_a_constraint_on_an_absent_parameter_holds() -> None:
    assert meets_constraints(["units <= 2", "momentum < 0.6"], (("units", "2"),))
    assert not meets_constraints(["units <= 2", "momentum < 0.6"], (("units", "2"), ("momentum", "0.9")))


def test_a_constraint_on_a_metric_needs_what_was_reported() -> None:
    constraints = ["units <= 2", "metrics.latency * units <= 50", "metrics.loss < 1"]
    parameters = (Parameter("units", ("1", "2")), Parameter("metrics.loss", ("1", "2")))
    assert list_constrained_metrics(parameters, constraints) == ("latency",)
    assert meets_constraints(constraints[:2], (("units", "2"),)), "no trial has reported it yet"
    assert measure_excess(constraints[:2], (("units", "2"),), {"latency": 30.0}) == 10
    assert measure_excess(constraints[:2], (("units", "2"),), {"latency": 20.0, "loss": 3.0}) == 0


def test_ends_depend_on_other_parameters() -> None:
    distribution = Distribution(Scale.INT, 0, 0, low_formula="layers / 2", high_formula="64 // {{layers}}")
    assert find_ends(distribution, {"layers": "5"}) == (3, 12)


@pytest.mark.parametrize(
    ("distribution", "problem"),
    [
        (Distribution(Scale.INT, 0, 0, low_formula="10 * a", high_formula="a"), "min 20 is more than max 2"),
        (Distribution(Scale.LOG, 0, 1, low_formula="a - 2"), "min 0 has no magnitude"),
        (Distribution(Scale.INT, 0, 9, by_magnitude=True, low_formula="a - 2"), "min 0 is less than 1"),
        (Distribution(Scale.UNIFORM, 0, 1, low_formula="1 / (a - 2)"), "it divides by 0"),
    ],
)
def test_ends_without_a_number_say_why(distribution: Distribution, problem: str) -> None:
    with pytest.raises(NoValue, match=problem):
        find_ends(distribution, {"a": "2"})
