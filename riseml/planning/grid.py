"""Parameters to the points of their grid."""

from __future__ import annotations

import itertools

from riseml.model import Environment
from riseml.spec.config.types import Train


def points(train: Train) -> tuple[Environment, ...]:
    """Every combination of the parameters' values, the last parameter varying fastest; one empty point without any."""
    names = [parameter.name for parameter in train.parameters]
    rows = itertools.product(*(parameter.values for parameter in train.parameters))
    return tuple(tuple(zip(names, row, strict=True)) for row in rows)


def is_set(train: Train) -> bool:
    """True when the parameters make more than one experiment."""
    return any(len(parameter.values) > 1 for parameter in train.parameters)
