"""The metrics of trials as a search reads them."""

from __future__ import annotations

from typing import Protocol

from riseml.analysis.ranking import Objective
from riseml.store.metrics.metric_store import MetricStore
from riseml.store.metrics.run_values import RunFollower, RunValues


class TrialMetrics(Protocol):
    """Reads metrics of experiments for a search. The ids are those of records."""

    def find_value(self, experiment: int, objective: Objective) -> float | None:
        """Return the value of an experiment that counts; None where it has none."""

    def read_steps(self, experiment: int, objective: Objective) -> tuple[tuple[int, float], ...]:
        """Return the steps that came since the last call, in their order, each with the value that counts up to there:
        nan where the last one is not finite. A report without a step gets the step of the report before it, or its own
        number if no report of its attempt had a step.
        """

    def forget(self, experiment: int) -> None:
        """Forget how far the steps of an experiment were read."""


class StoredMetrics:
    """The metrics of a store.

    Args:
        store: counts what jobs report.
        values: the values of runs.
    """

    def __init__(self, store: MetricStore, values: RunValues) -> None:
        self._values = values
        self._steps = RunFollower(store)

    def find_value(self, experiment: int, objective: Objective) -> float | None:
        return self._values.find_value(experiment, objective)

    def read_steps(self, experiment: int, objective: Objective) -> tuple[tuple[int, float], ...]:
        return tuple(self._steps.read_new(experiment, objective))

    def forget(self, experiment: int) -> None:
        self._steps.forget(experiment)
