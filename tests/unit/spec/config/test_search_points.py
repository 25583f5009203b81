"""`search.points` and `search.constraints` as they are read; tests/unit/spec/broken.txt has their mistakes."""

from __future__ import annotations

from riseml.spec.config.loader import load_config

TEXT = """\
project: x
train:
  image: a
  run: t {{lr}} {{units}} {{layers}} $MOMENTUM
  parameters:
    lr: {log: {min: 1e-5, max: 0.1}}
    units: {int: {min: 16, max: "{{layers}} * 64", step: 16}}
    layers: [2, 3, 4]
    momentum: {values: [0.90], when: {layers: 4}}
  search:
    method: tpe
    trials: 9
    metric: m
    goal: minimize
    constraints: [units * layers <= 512, lr < 0.05]
    points:
    - {layers: 4, momentum: 0.90, units: 64, lr: 1e-3}
    - {lr: 0.010}
"""


def test_points_keep_their_texts_and_have_the_order_of_the_parameters() -> None:
    search = load_config(TEXT).train.search
    assert search is not None
    assert search.points == (
        (("lr", "1e-3"), ("units", "64"), ("layers", "4"), ("momentum", "0.90")),
        (("lr", "0.010"),),
    )
    assert search.constraints == ("units * layers <= 512", "lr < 0.05")


def test_a_grid_counts_the_combinations_that_are_allowed() -> None:
    text = """\
project: x
train:
  image: a
  run: t {{units}} {{layers}} $MOMENTUM
  parameters: {units: [64, 128], layers: [2, 4], momentum: {values: [1, 2], when: {layers: 4}}}
  search: {method: grid, metric: m, goal: minimize, constraints: [units * layers <= 256]}
"""
    search = load_config(text).train.search
    assert search is not None
    assert search.trials == 4, "64 2, 64 4 1, 64 4 2, 128 2"
