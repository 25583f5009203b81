"""The variables of a job for other people: without values from `env`, and without values that look secret."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from riseml.base.records import dataclass
from riseml.model import Experiment
from riseml.planning.launch import BoundJob, job_variables
from riseml.spec.scalars.secret_names import looks_secret

_HIDDEN = "\0"
"""Stands for a value that is not shown. A real value has no NUL character."""


@dataclass(frozen=True, slots=True)
class ShownVariables:
    """The variables of one job."""

    values: dict[str, str]
    hidden: list[str]  # names of the variables that are not shown


def hide_values(experiment: Experiment, names: Iterable[str] = ()) -> Experiment:
    """Return the experiment without the values of its `env`, for `list_variables`.

    Args:
        experiment: the store has removed its `env` when it is closed.
        names: the variables that `env` had then.
    """
    secrets = [name for name, _ in experiment.plan.secret_variables]
    visible = [*([name for name, _ in experiment.environment] or names), *secrets]
    return replace(experiment, environment=tuple((name, _HIDDEN) for name in visible))


def list_variables(bound: BoundJob) -> ShownVariables:
    """Return the variables of a job of an experiment that `hide_values` gave."""
    variables = job_variables(bound)
    hidden = [name for name, value in variables if value == _HIDDEN or looks_secret(name)]
    return ShownVariables({name: value for name, value in variables if name not in hidden}, hidden)
