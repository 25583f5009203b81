"""`when`, `default`, formulas and nested names: what is read of them. tests/unit/spec/broken.txt has their mistakes."""

from __future__ import annotations

import pytest

from riseml.planning.grid import grid_points, makes_set
from riseml.spec.config.loader import Overrides, check_config, load_config
from riseml.spec.config.types import Distribution, Parameter, Scale

TEXT = """\
project: x
train:
  image: a
  run: t {{optimizer}} --momentum {{momentum}} --lr {{optimizer.lr}} $UNITS $NOISE
  parameters:
    optimizer: [adam, sgd]
    momentum: {values: [0.50, 0.9], when: {optimizer: sgd}, default: 0.0}
    optimizer.lr: {log: {min: 1e-5, max: 0.1}}
    layers: {values: [2, 3]}
    units: {int: {min: 16, max: "{{layers}} * 64"}, when: {optimizer: [adam, sgd], layers: 2}}
    noise: {normal: {mean: 1, sd: 0.5}}
  search: {method: tpe, trials: 9, metric: m, goal: minimize}
"""


def test_conditions_formulas_and_nested_names_are_read_as_written() -> None:
    checked = check_config(TEXT)
    assert [str(problem) for problem in checked.problems] == [
        "riseml.yml:9:5 train.parameters.layers: warning: no line of `run` uses {{layers}}; "
        "jobs have it as LAYERS in their environment"
    ]
    assert load_config(TEXT).train.parameters == (
        Parameter("optimizer", ("adam", "sgd")),
        Parameter("momentum", ("0.50", "0.9"), when=(("optimizer", ("sgd",)),), default="0.0"),
        Parameter("optimizer.lr", (), Distribution(Scale.LOG, 1e-5, 0.1)),
        Parameter("layers", ("2", "3")),
        Parameter(
            "units",
            (),
            Distribution(Scale.INT, 16, 0, high_formula="{{layers}} * 64"),
            when=(("optimizer", ("adam", "sgd")), ("layers", ("2",))),
        ),
        Parameter("noise", (), Distribution(Scale.NORMAL, -2, 4, mean=1, sd=0.5)),
    )


POINTS = [
    {"optimizer": "adam", "optimizer.lr": "0.01", "layers": "3", "noise": "1"},
    {"optimizer": "sgd", "momentum": "0.50", "optimizer.lr": "0.01", "layers": "2", "units": "100", "noise": "1"},
]


@pytest.mark.parametrize("point", POINTS)
def test_a_trial_can_be_repeated_with_its_values(point: dict[str, str]) -> None:
    """`riseml rerun` gives the values of a trial as options; conditions on other values do not hold then."""
    checked = check_config(TEXT, overrides=Overrides(tuple(point.items())))
    assert checked.spec is not None, checked.problems
    train = checked.spec.train
    assert train.search is None
    assert not makes_set(train)
    assert [dict(values) for values in grid_points(train)] == [point]


def test_an_option_may_leave_a_search_to_the_parameters_that_can_be_there() -> None:
    train = load_config(TEXT, overrides=Overrides((("optimizer", "adam"),))).train
    assert train.search is not None
    refused = check_config(TEXT, overrides=Overrides((("optimizer", "adam"), ("layers", "[2, 4, x]"))))
    assert 'has the value "x", which is no number' in " ".join(map(str, refused.problems))


def test_two_names_of_one_variable_are_refused() -> None:
    text = (
        TEXT.replace("layers:", "optimizer_lr:")
        .replace("{{layers}}", "{{optimizer_lr}}")
        .replace("layers: 2", "optimizer_lr: 2")
    )
    assert "would both set the environment variable OPTIMIZER_LR" in str(check_config(text).problems)
