"""The grid of an experiment set: every combination of the parameters' values."""

from __future__ import annotations

from riseml.model import Environment
from riseml.spec.config.conditions import combine_values
from riseml.spec.config.types import Parameter, Train


def grid_points(train: Train) -> tuple[Environment, ...]:
    """Return every combination of the parameters' values, the last parameter varying fastest. A parameter whose
    condition does not hold is not in it.

    Example:
        with `lr: [0.1, 0.01]` and `batch: 32`: ((("lr", "0.1"), ("batch", "32")), (("lr", "0.01"), ("batch", "32")))

    Without parameters there is one empty point. A distribution gives its smallest number only: a search chooses the
    values.
    """
    values = [parameter.values or _stand_in(parameter) for parameter in train.parameters]
    return tuple(combine_values(train.parameters, values))


def _stand_in(parameter: Parameter) -> tuple[str, ...]:
    return () if parameter.distribution is None else (f"{parameter.distribution.low:g}",)


def makes_set(train: Train) -> bool:
    """Return True when the parameters make more than one experiment, or a search does."""
    if train.search is not None or not any(parameter.when for parameter in train.parameters):
        return train.search is not None or any(len(parameter.values) > 1 for parameter in train.parameters)
    return len(grid_points(train)) > 1
