"""Parameters to experiments."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from riseml.planning.grid import grid_points, makes_set
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
