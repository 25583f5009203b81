"""Parameters to experiments."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from riseml.planning.grid import grid_points, makes_set
from riseml.planning.image import Manifest
from riseml.planning.plan import make_plan, make_plans
from riseml.spec.config.loader import load_config
from riseml.spec.config.types import Parameter, Train

values = st.lists(st.text("ab1.", min_size=1), min_size=1, max_size=4, unique=True).map(tuple)
names = st.text("xyz", min_size=1, max_size=3)
trains = st.dictionaries(names, values, max_size=4).map(
    lambda found: Train(("run",), parameters=tuple(Parameter(name, each) for name, each in found.items()))
)


@given(trains)
def test_every_combination_once(train: Train) -> None:
    found = grid_points(train)
    assert len(set(found)) == len(found) == math.prod(len(one.values) for one in train.parameters)
    assert makes_set(train) == (len(found) > 1)
    for point in found:
        assert [name for name, _ in point] == [one.name for one in train.parameters]
        assert all(value in one.values for (_, value), one in zip(point, train.parameters, strict=True))


def test_the_last_parameter_varies_fastest() -> None:
    train = Train((), parameters=(Parameter("lr", ("0.1", "1e-6")), Parameter("n", ("2", "3"))))
    assert grid_points(train) == (
        (("lr", "0.1"), ("n", "2")),
        (("lr", "0.1"), ("n", "3")),
        (("lr", "1e-6"), ("n", "2")),
        (("lr", "1e-6"), ("n", "3")),
    )
    assert grid_points(Train(())) == ((),)


def test_a_point_has_the_jobs_and_the_image_of_its_topology() -> None:
    spec = load_config(
        "project: x\ntrain:\n  framework: jax\n  run: t {{lr}}\n"
        "  jax: {distributed: {worker: '{{workers}}'}}\n  resources: {gpus: '{{gpus}}'}\n"
        "  parameters: {lr: [1, 2], workers: [1, 2], gpus: [0, 1]}\n"
    )
    plans = make_plans(spec, grid_points(spec.train), Manifest())
    assert [dict(plan.parameters)["lr"] for plan in plans] == ["1"] * 4 + ["2"] * 4
    assert [(len(plan.jobs), plan.jobs[0].resources.gpus) for plan in plans[:4]] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert ["cuda12" in plan.image.install[0] for plan in plans[:4]] == [False, True, False, True]
    assert make_plan(spec, grid_points(spec.train)[3], Manifest()) == plans[3]
