"""The metrics of trials as a search reads them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from riseml.spec.config.types import Goal
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_store import MetricStore


class _ReadSteps(NamedTuple):
    """The position up to which the steps of an experiment were read."""

    position: ReadPosition = ReadPosition()
    values: int = 0  # so far
    last: int | None = None  # step; None: none came with a value


class TrialMetrics(Protocol):
    """Reads metrics of experiments for a search. The ids are those of records."""

    def read_best(self, experiments: Collection[int], metric: str, goal: Goal) -> Mapping[int, float]:
        """Return the best finite value of each experiment that has reported one."""

    def read_steps(self, experiment: int, metric: str) -> tuple[tuple[int, float], ...]:
        """Return the steps and values that came since the last call, in their order. A report without a step gets the
        step of the report before it, or its own number if no report had a step.
        """

    def forget(self, experiment: int) -> None:
        """Forget how far the steps of an experiment were read."""


class StoredMetrics:
    """The metrics of a store.

    Args:
        store: counts what jobs report.
    """

    def __init__(self, store: MetricStore) -> None:
        self._store = store
        self._read: dict[int, _ReadSteps] = {}

    def read_best(self, experiments: Collection[int], metric: str, goal: Goal) -> Mapping[int, float]:
        best_values: dict[int, float] = {}
        for experiment, summaries in self._store.read_summaries(experiments).items():
            summary = summaries.get(metric)
            best = None if summary is None else summary.maximum if goal is Goal.MAXIMIZE else summary.minimum
            if best is not None:
                best_values[experiment] = best
        return best_values

    def read_steps(self, experiment: int, metric: str) -> tuple[tuple[int, float], ...]:
        position, count, last = self._read.get(experiment, _ReadSteps())
        steps: list[tuple[int, float]] = []
        complete = False
        while not complete:
            page = self._store.read_values(experiment, metric, position)
            for entry in page.values:
                count += 1
                last = last if entry.step is None else entry.step
                steps.append((count if last is None else last, entry.value))
            position = page.end
            complete = page.complete
        self._read[experiment] = _ReadSteps(position, count, last)
        return tuple(steps)

    def forget(self, experiment: int) -> None:
        self._read.pop(experiment, None)
