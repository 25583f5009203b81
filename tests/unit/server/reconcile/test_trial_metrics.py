"""The metrics of trials, as a search reads them from a store."""

from __future__ import annotations

from typing import NamedTuple, cast

import pytest

from riseml.server.reconcile.trial_metrics import StoredMetrics
from riseml.spec.config.types import Goal
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_store import MetricStore
from riseml.store.metrics.metric_summary import MetricSummary


class Value(NamedTuple):
    """A reported value; without a step: None."""

    step: int | None
    value: float


class Page(NamedTuple):
    """A part of what was reported."""

    values: tuple[Value, ...]
    end: ReadPosition
    complete: bool


class MemoryMetrics:
    """A store with what a test reports, which it gives two values at a time."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.summaries: dict[int, dict[str, MetricSummary]] = {}

    def read_values(self, experiment: int, metric: str, position: ReadPosition) -> Page:
        end = min(position.offset + 2, len(self.values))
        return Page(tuple(self.values[position.offset : end]), ReadPosition(end), end == len(self.values))

    def read_summaries(self, experiments: object) -> dict[int, dict[str, MetricSummary]]:
        return self.summaries


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([Value(10, 0.5), Value(20, 0.4), Value(30, 0.3)], ((10, 0.5), (20, 0.4), (30, 0.3))),
        ([Value(None, 0.5), Value(None, 0.4)], ((1, 0.5), (2, 0.4))),
        ([Value(10, 0.5), Value(None, 0.4)], ((10, 0.5), (10, 0.4))),
    ],
)
def test_a_report_without_a_step_has_that_of_the_one_before(
    values: list[Value], steps: tuple[tuple[int, float], ...]
) -> None:
    store = MemoryMetrics()
    store.values = values
    assert StoredMetrics(cast(MetricStore, store)).read_steps(4, "loss") == steps


def test_steps_are_read_once_until_they_are_forgotten() -> None:
    store = MemoryMetrics()
    metrics = StoredMetrics(cast(MetricStore, store))
    store.values = [Value(None, 0.5)]
    assert metrics.read_steps(4, "loss") == ((1, 0.5),)
    assert metrics.read_steps(4, "loss") == ()
    store.values.append(Value(None, 0.4))
    assert metrics.read_steps(4, "loss") == ((2, 0.4),)
    metrics.forget(4)
    assert metrics.read_steps(4, "loss") == ((1, 0.5), (2, 0.4))


@pytest.mark.parametrize(("goal", "best"), [(Goal.MAXIMIZE, 0.9), (Goal.MINIMIZE, 0.1)])
def test_the_best_value_is_the_largest_or_the_smallest(goal: Goal, best: float) -> None:
    store = MemoryMetrics()
    summary = MetricSummary("loss", 3, 0.5, None, "", 1, 0.1, None, 0.9, None)
    store.summaries = {4: {"loss": summary}, 5: {"other": summary}}
    assert StoredMetrics(cast(MetricStore, store)).read_best([4, 5], "loss", goal) == {4: best}
