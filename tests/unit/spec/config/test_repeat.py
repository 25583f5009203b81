"""`repeat`: the parameter `seed` of each point."""

from __future__ import annotations

import pytest

from riseml.planning.grid import grid_points, makes_set
from riseml.spec.config.loader import Overrides, check_config, load_config
from riseml.spec.config.types import Train

FILE = """\
project: x
train:
  image: python:3.11
  run: t {{seed}} {{lr}}
  parameters: {lr: [0.1, 0.01]}
  repeat: 3
"""


def load(text: str, **options: str) -> Train:
    return load_config(text, "riseml.yml", Overrides(tuple(options.items()))).train


def test_each_point_of_a_grid_runs_with_each_seed() -> None:
    train = load(FILE)
    assert [dict(point) for point in grid_points(train)] == [
        {"lr": lr, "seed": seed} for lr in ("0.1", "0.01") for seed in ("1", "2", "3")
    ]
    assert (train.seeds, makes_set(train)) == (("1", "2", "3"), True)


def test_a_file_without_parameters_may_repeat_its_run() -> None:
    text = "project: x\ntrain:\n  image: a\n  run: t\n  repeat: 2\n"
    assert grid_points(load(text)) == ((("seed", "1"),), (("seed", "2"),))
    assert [str(problem) for problem in check_config(text).problems] == [], "SEED is in the environment"


def test_the_command_line_chooses_one_seed() -> None:
    train = load(FILE, seed="2", lr="0.5")
    assert grid_points(train) == ((("lr", "0.5"), ("seed", "2")),)
    assert (train.seeds, makes_set(train)) == ((), False)


def test_repeat_may_be_changed_for_one_submission() -> None:
    changed = load_config(FILE, "riseml.yml", Overrides((), (("train.repeat", "1"),))).train
    assert len(grid_points(changed)) == 2


@pytest.mark.parametrize("method", ["grid", "tpe, trials: 2"])
def test_a_search_does_not_choose_the_seed(method: str) -> None:
    train = load(FILE + f"  search: {{method: {method}, metric: loss, goal: minimize}}\n")
    assert train.search is not None
    assert (train.search.trials, train.seeds) == (2, ("1", "2", "3"))


def test_counts_may_be_parameters_beside_repeat() -> None:
    text = FILE.replace("image: python:3.11", "framework: tensorflow").replace("lr: [0.1, 0.01]", "lr: 1, n: [1, 2]")
    text += '  tensorflow: {distributed: {worker: "{{n}}"}}\n'
    spec = load_config(text)
    assert [dict(topology.values) for topology in spec.topologies] == [{"n": "1"}, {"n": "2"}]
    assert len(grid_points(spec.train)) == 6
