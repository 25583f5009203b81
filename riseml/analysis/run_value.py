"""Which of the values that a run reports of a metric counts: `search.objective`. Pure.

Only the last attempt of a run counts, because the others have failed. A run whose last value is nan or infinite has
diverged, and has no value, however good an earlier one was; only `at` asks for one step, whatever comes after it.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from riseml.spec.config.types import BEST_VALUE, Goal, ValueKind, ValueRule

if TYPE_CHECKING:
    from riseml.analysis.rows import MetricValues


class RunValue:
    """Follows one metric of one run, in the order of its reports.

    Args:
        goal: which value is better.
        rule: which value counts.
    """

    def __init__(self, goal: Goal, rule: ValueRule = BEST_VALUE) -> None:
        self._better = max if goal is Goal.MAXIMIZE else min
        self._rule = rule
        self._attempt = 0
        self._last = math.nan
        self._best: float | None = None  # None: no value is finite
        self._tail: deque[float] = deque(maxlen=max(1, rule.number if rule.kind is ValueKind.MEAN else 0))
        self._at: float | None = None  # None: the step is not reached

    def add(self, value: float, step: int, attempt: int = 1) -> None:
        """Take the next value; of an attempt of its own, the first one. Values of earlier attempts no longer count."""
        if attempt < self._attempt:
            return
        if attempt > self._attempt:
            self._attempt = attempt
            self._forget()
        self._last = value
        if self._rule.kind is ValueKind.MEAN:
            self._tail.append(value)
        if self._rule.kind is ValueKind.AT and self._at is None and step >= self._rule.number:
            self._at = value
        if math.isfinite(value):
            self._best = value if self._best is None else self._better(self._best, value)

    def find_value(self, attempt: int | None = None) -> float | None:
        """Return the value of the run; None where it has none.

        Args:
            attempt: the last attempt of the run; None: the last one that has reported.
        """
        if attempt is not None and attempt != self._attempt:
            return None
        is_missing = self._rule.kind is ValueKind.AT and self._at is None
        value = self.find_so_far()
        return None if is_missing or not math.isfinite(value) else value

    def find_so_far(self) -> float:
        """Return the value by which a run that goes on is compared; nan where its last value is not finite. Before its
        step, `at` compares the last value."""
        if self._rule.kind is ValueKind.AT and self._at is not None:
            value = self._at
        elif not math.isfinite(self._last):
            value = math.nan
        elif self._rule.kind is ValueKind.BEST and self._best is not None:
            value = self._best
        elif self._rule.kind is ValueKind.MEAN:
            value = _average(self._tail)
        else:
            value = self._last
        return value if math.isfinite(value) else math.nan

    def _forget(self) -> None:
        """Begin another attempt."""
        self._last = math.nan
        self._best = None
        self._tail.clear()
        self._at = None


def _average(values: deque[float]) -> float:
    """Return the mean; nan where a value is not finite."""
    if not all(map(math.isfinite, values)):
        return math.nan
    return math.fsum(value / len(values) for value in values)  # the sum of the values itself may be too large


def summarize_value(values: MetricValues, goal: Goal, rule: ValueRule) -> float | None:
    """Return the value of a run with one attempt from the summary of its metric; None where it has none.

    Raises:
        LookupError: a summary does not say it: `mean` and `at` need the values.
    """
    if rule.kind not in (ValueKind.BEST, ValueKind.LAST):
        raise LookupError(f"a summary has no {rule}")
    if not math.isfinite(values.last):
        return None
    if rule.kind is ValueKind.LAST:
        return values.last
    return values.maximum if goal is Goal.MAXIMIZE else values.minimum


def describe_value(metric: str, goal: Goal, rule: ValueRule) -> str:
    """Return what is ranked, for people: `the largest accuracy`, `the smallest mean of the last 5 values of loss`."""
    size = "largest" if goal is Goal.MAXIMIZE else "smallest"
    match rule.kind:
        case ValueKind.BEST:
            return f"the {size} {metric}"
        case ValueKind.LAST:
            return f"the {size} last {metric}"
        case ValueKind.MEAN:
            return f"the {size} mean of the last {rule.number} values of {metric}"
        case ValueKind.AT:
            return f"the {size} {metric} at step {rule.number}"
