"""The values by which runs are ranked, from summaries and from the log."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, cast

import pytest

from riseml.analysis.ranking import Objective
from riseml.spec.config.types import BEST_VALUE, Goal, ValueKind, ValueRule
from riseml.store.logs.read_position import ReadPosition
from riseml.store.metrics.metric_store import MetricStore
from riseml.store.metrics.metric_summary import MetricCount, MetricSummary
from riseml.store.metrics.run_values import RunFollower, RunValues
from riseml.store.outcomes import OutcomeStore

LOSS = Objective("loss", Goal.MINIMIZE)
LAST = Objective("loss", Goal.MINIMIZE, ValueRule(ValueKind.LAST))


class Value(NamedTuple):
    """A reported value; without a step: None."""

    step: int | None
    value: float
    attempt: int = 1


class Page(NamedTuple):
    """A part of what was reported."""

    values: tuple[Value, ...]
    end: ReadPosition
    complete: bool


class MemoryMetrics:
    """A store with what a test reports, which it gives two values at a time."""

    def __init__(self, *values: Value) -> None:
        self.values = list(values)
        self.reads = 0

    def read_values(self, experiment: int, metric: str, position: ReadPosition) -> Page:
        self.reads += 1
        end = min(position.offset + 2, len(self.values))
        return Page(tuple(self.values[position.offset : end]), ReadPosition(end), end == len(self.values))

    def summarize(self) -> MetricSummary:
        count = MetricCount("loss")
        for value in self.values:
            count.add(value.value, value.step, "", value.attempt)
        return count.summarize()


class MemoryOutcomes:
    """The last attempts of experiments that had several."""

    def __init__(self, attempts: dict[int, int] | None = None) -> None:
        self.attempts = attempts or {}

    def read_attempts(self, keys: Iterable[int]) -> dict[int, int]:
        return {key: self.attempts[key] for key in keys if key in self.attempts}


def make_values(metrics: MemoryMetrics, attempts: dict[int, int] | None = None) -> RunValues:
    return RunValues(cast(MetricStore, metrics), cast(OutcomeStore, MemoryOutcomes(attempts)))


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([Value(10, 0.5), Value(20, 0.4), Value(30, 0.3)], [(10, 0.5), (20, 0.4), (30, 0.3)]),
        ([Value(None, 0.5), Value(None, 0.4)], [(1, 0.5), (2, 0.4)]),
        ([Value(10, 0.5), Value(None, 0.4)], [(10, 0.5), (10, 0.4)]),
        ([Value(10, 0.4), Value(20, 0.5)], [(10, 0.4), (20, 0.4)]),  # the best one up to there
        ([Value(None, 0.4), Value(None, 0.5, 2), Value(None, 0.6, 2)], [(1, 0.4), (1, 0.5), (2, 0.5)]),
    ],
)
def test_a_report_without_a_step_has_that_of_the_one_before(
    values: list[Value], steps: list[tuple[int, float]]
) -> None:
    assert RunFollower(cast(MetricStore, MemoryMetrics(*values))).read_new(4, LOSS) == steps


def test_steps_are_read_once_until_they_are_forgotten() -> None:
    store = MemoryMetrics(Value(None, 0.5))
    follower = RunFollower(cast(MetricStore, store))
    assert follower.read_new(4, LOSS) == [(1, 0.5)]
    assert follower.read_new(4, LOSS) == []
    store.values.append(Value(None, 0.4))
    assert follower.read_new(4, LOSS) == [(2, 0.4)]
    follower.forget(4)
    assert follower.read_new(4, LOSS) == [(1, 0.5), (2, 0.4)]


@pytest.mark.parametrize(
    ("rule", "is_read"),
    [
        (BEST_VALUE, False),
        (ValueRule(ValueKind.LAST), False),
        (ValueRule(ValueKind.MEAN, 2), True),
        (ValueRule(ValueKind.AT, 2), True),
    ],
)
def test_the_log_is_read_only_where_the_summary_does_not_say_the_value(rule: ValueRule, *, is_read: bool) -> None:
    metrics = MemoryMetrics(Value(1, 0.1), Value(2, 0.4), Value(3, 0.2))
    expected = {ValueKind.BEST: 0.1, ValueKind.LAST: 0.2, ValueKind.MEAN: 0.3, ValueKind.AT: 0.4}[rule.kind]
    found = make_values(metrics).read_values({4: metrics.summarize()}, Objective("loss", Goal.MINIMIZE, rule))
    assert found == {4: pytest.approx(expected)}
    assert (metrics.reads > 0) is is_read


@pytest.mark.parametrize("objective", [LOSS, LAST])
def test_a_value_of_an_attempt_that_failed_does_not_win(objective: Objective) -> None:
    metrics = MemoryMetrics(Value(1, 0.1), Value(2, 0.2), Value(1, 0.6, 2), Value(2, 0.5, 2))
    values = make_values(metrics, {4: 2})
    assert values.read_values({4: metrics.summarize()}, objective) == {4: 0.5}
    metrics.values = metrics.values[:2]
    values = make_values(metrics, {4: 2})
    assert values.read_values({4: metrics.summarize()}, objective) == {}, "its second attempt has reported nothing"


@pytest.mark.parametrize("last", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("objective", [LOSS, LAST, Objective("loss", Goal.MAXIMIZE)])
def test_a_run_that_ends_with_nan_or_infinity_has_no_value(last: float, objective: Objective) -> None:
    metrics = MemoryMetrics(Value(1, 0.1), Value(2, last))
    assert make_values(metrics).read_values({4: metrics.summarize()}, objective) == {}
