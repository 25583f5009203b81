"""Distributions as they are read; tests/unit/spec/broken.txt has their mistakes."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import load_config
from riseml.spec.config.types import Distribution, Scale

TEXT = """\
project: x
train:
  image: a
  run: t $A
  parameters: {n: [1, 2], a: {}}
  search: {method: random, trials: 4, metric: m, goal: minimize}
"""


@pytest.mark.parametrize(
    ("text", "distribution"),
    [
        ("{uniform: {min: 0, max: 1, step: 0.5}}", Distribution(Scale.UNIFORM, 0, 1, 0.5)),
        ("{log: {min: 1e-5, max: 0.1}}", Distribution(Scale.LOG, 1e-5, 0.1)),
        ("{int: {min: 1, max: 8, log: true}}", Distribution(Scale.INT, 1, 8, by_magnitude=True)),
        ("{normal: {mean: -1, sd: 2}}", Distribution(Scale.NORMAL, -13, 11, mean=-1, sd=2)),
        ("{uniform: {min: n / 4, max: n}}", Distribution(Scale.UNIFORM, 0, 0, low_formula="n / 4", high_formula="n")),
        (
            '{int: {min: 1, max: "{{n}} * 8", log: true}}',
            Distribution(Scale.INT, 1, 0, by_magnitude=True, high_formula="{{n}} * 8"),
        ),
    ],
)
def test_a_distribution_is_read(text: str, distribution: Distribution) -> None:
    assert load_config(TEXT.replace("a: {}", f"a: {text}")).train.parameters[1].distribution == distribution
