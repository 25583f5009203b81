"""The section `search`, and distributions of parameters."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import Overrides, check_config, load_config
from riseml.spec.config.types import (
    BEST_VALUE,
    Distribution,
    Goal,
    PopulationRule,
    Scale,
    SearchMethod,
    SearchSection,
    StopMethod,
    StopRule,
    ValueKind,
    ValueRule,
)


def test_a_search_has_its_distributions_and_its_rule_of_stopping() -> None:
    text = """\
project: x
train:
  image: python:3.11
  run: t {{lr}} {{units}} {{layers}}
  parameters: {lr: {log: {min: 1e-5, max: 0.1}}, units: {int: {min: 16, max: 64, step: 16}}, layers: [2, 3]}
  search: {method: tpe, trials: 40, metric: val/acc, goal: maximize, seed: 7, stop: {method: asha}, max_failed: 0}
"""
    train = load_config(text).train
    lr, units, layers = train.parameters
    assert (lr.values, lr.distribution) == ((), Distribution(Scale.LOG, 1e-5, 0.1))
    assert units.distribution == Distribution(Scale.INT, 16.0, 64.0, 16.0)
    assert (layers.values, layers.distribution) == (("2", "3"), None)
    stop = StopRule(StopMethod.ASHA, after=1, factor=3)
    assert train.search == SearchSection(SearchMethod.TPE, "val/acc", Goal.MAXIMIZE, 40, 7, stop, 0)


def test_a_grid_search_tries_each_combination_once() -> None:
    text = "project: x\ntrain: {image: a, run: t, parameters: {a: [1, 2], b: [1, 2, 3]}, search: {SEARCH}}\n"
    whole = text.replace("SEARCH", "method: grid, metric: loss, goal: minimize")
    search = load_config(whole).train.search
    assert search is not None and search.trials == 6
    part = load_config(whole.replace("grid,", "grid, trials: 4,")).train.search
    assert part is not None and part.trials == 4


def test_a_distribution_decides_no_count() -> None:
    text = """\
project: x
train:
  framework: tensorflow
  tensorflow: {distributed: {worker: "{{w}}"}}
  run: t
  parameters: {w: {int: {min: 1, max: 3}}}
  search: {method: tpe, trials: 4, metric: m, goal: maximize}
"""
    (problem,) = check_config(text).problems
    assert "is a distribution, and counts and resources need values that are known" in problem.problem
    assert check_config(text.replace("{int: {min: 1, max: 3}}", "[1, 2]")).problems == ()


def test_options_that_fix_every_parameter_leave_no_search() -> None:
    text = """\
project: x
train:
  image: python:3.11
  run: t {{lr}} {{units}}
  parameters: {lr: {log: {min: 1e-5, max: 0.1}}, units: 16}
  search: {method: tpe, trials: 40, metric: accuracy, goal: maximize}
"""
    checked = check_config(text, overrides=Overrides((("lr", "0.01"),)))
    assert checked.spec is not None and checked.spec.train.search is None
    assert [problem.problem for problem in checked.problems] == [
        "every parameter has one value, so that one experiment runs without a search"
    ]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("best", BEST_VALUE),
        ("last", ValueRule(ValueKind.LAST)),
        ("mean(5)", ValueRule(ValueKind.MEAN, 5)),
        ("at(1000)", ValueRule(ValueKind.AT, 1000)),
    ],
)
def test_an_objective_says_which_value_counts(text: str, rule: ValueRule) -> None:
    file = f"""\
project: x
train:
  image: python:3.11
  run: t {{{{layers}}}}
  parameters: {{layers: [2, 3]}}
  search: {{method: grid, metric: loss, goal: minimize, objective: {text}}}
"""
    search = load_config(file).train.search
    assert search is not None
    assert (search.objective, str(search.objective)) == (rule, text)


def test_a_population_counts_the_last_value_unless_the_file_says_otherwise() -> None:
    text = """\
project: x
train:
  image: python:3.11
  run: t {{lr}}
  parameters: {lr: {log: {min: 1e-5, max: 0.1}}}
  search: {method: pbt, trials: 16, metric: acc, goal: maximize}
"""
    search = load_config(text).train.search
    assert search is not None
    assert (search.pbt, search.objective) == (PopulationRule(8, 0.25, 0.25), ValueRule(ValueKind.LAST))
    keys = "objective: best, pbt: {population: 4, replace: 0.5, resample: 0, inherit: [a/**, '*.pt']}"
    search = load_config(text.replace("maximize}", f"maximize, {keys}}}")).train.search
    assert search is not None
    assert (search.pbt, search.objective) == (PopulationRule(4, 0.5, 0.0, ("a/**", "*.pt")), BEST_VALUE)
