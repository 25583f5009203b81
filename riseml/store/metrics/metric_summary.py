"""The summary of one metric of an experiment: the exact last and best values, and the history. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from riseml.store.metrics.metric_history import MetricHistory


class MetricSummary(msgspec.Struct, frozen=True, array_like=True):
    """One metric of an experiment, over all of its jobs and attempts.

    A table of results reads ten thousand of them at once; msgspec makes one in a fiftieth of the time of a dataclass.
    """

    name: str
    count: int  # values that were reported
    last: float  # may be nan or infinite
    last_step: int | None  # the last one that came with a value; None: none did
    last_at: str  # RFC 3339 with fractions of a second
    attempt: int  # attempt of the job that reported the last value
    minimum: float | None = None  # least finite value; None: there is none
    minimum_step: int | None = None  # step of the first value that is the minimum
    maximum: float | None = None
    maximum_step: int | None = None
    not_finite: int = 0  # values that are nan or infinite
    last_not_finite: int = 0  # of the last values, since the last finite one or the beginning of the attempt


class MetricCount:
    """Takes the values of one metric in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.history = MetricHistory()
        self._count = 0
        self._last: tuple[float, int | None, str, int] = (math.nan, None, "", 1)
        self._minimum: tuple[float, int | None] = (math.inf, None)
        self._maximum: tuple[float, int | None] = (-math.inf, None)
        self._not_finite = 0
        self._last_not_finite = 0

    def read_last(self) -> float:
        """Return the last value; nan before the first one."""
        return self._last[0]

    def add(self, value: float, step: int | None, at: str, attempt: int) -> None:
        """Take the next value. A value without a step, such as one of `report_result`, gets the step of the value
        before."""
        self._count += 1
        if step is None:
            step = self._last[1]
        if attempt > self._last[3]:
            self._last_not_finite = 0
        self._last = (value, step, at, attempt)
        if not math.isfinite(value):
            self._not_finite += 1
            self._last_not_finite += 1
        else:
            self._last_not_finite = 0
            if value < self._minimum[0]:
                self._minimum = (value, step)
            if value > self._maximum[0]:
                self._maximum = (value, step)
        self.history.add(value, step, at)

    def add_many(
        self, values: Sequence[float], steps: Sequence[int | None] | None, stamps: Sequence[bytes], attempt: int
    ) -> None:
        """Take many values that follow each other, as `add` does, in a fraction of the time."""
        known_steps = [self._last[1]] * len(values) if steps is None else steps
        if not math.isfinite(sum(values)):  # a value is not finite, or their sum is too large
            for value, step, stamp in zip(values, known_steps, stamps, strict=True):
                self.add(value, step, stamp.decode(), attempt)
            return
        self._count += len(values)
        self._last_not_finite = 0
        self._last = (values[-1], known_steps[-1], stamps[-1].decode(), attempt)
        low = min(values)
        high = max(values)
        if low < self._minimum[0]:
            self._minimum = (low, known_steps[values.index(low)])
        if high > self._maximum[0]:
            self._maximum = (high, known_steps[values.index(high)])
        self.history.add_finite(values, known_steps, stamps)

    def summarize(self) -> MetricSummary:
        """Return the current summary."""
        value, step, at, attempt = self._last
        has_finite = self._count > self._not_finite
        minimum, maximum = (self._minimum, self._maximum) if has_finite else ((None, None), (None, None))
        best = (minimum[0], minimum[1], maximum[0], maximum[1])
        not_finite = (self._not_finite, self._last_not_finite)
        return MetricSummary(self.name, self._count, value, step, at, attempt, *best, *not_finite)

    @classmethod
    def restore(cls, summary: MetricSummary, history: MetricHistory) -> MetricCount:
        """Return the count that gave this summary and this history."""
        count = cls(summary.name)
        count.history = history
        count._count = summary.count
        count._not_finite = summary.not_finite
        count._last_not_finite = summary.last_not_finite
        count._last = (summary.last, summary.last_step, summary.last_at, summary.attempt)
        if summary.minimum is not None and summary.maximum is not None:
            count._minimum = (summary.minimum, summary.minimum_step)
            count._maximum = (summary.maximum, summary.maximum_step)
        return count


def summary_to_row(summary: MetricSummary) -> list[Any]:
    """Return a summary as JSON values; JSON has no nan, so that the last value is a text."""
    return [
        *(summary.name, summary.count, repr(summary.last), summary.last_step, summary.last_at, summary.attempt),
        *(summary.minimum, summary.minimum_step, summary.maximum, summary.maximum_step),
        *(summary.not_finite, summary.last_not_finite),
    ]


class StoredSummaries(msgspec.Struct, frozen=True):
    """The metrics of an experiment as they are stored."""

    metrics: list[MetricSummary]
    slow: list[str]  # names of patterns that took too long
    tracked: list[str] = []  # names whose first value was tracked


_DECODER = msgspec.json.Decoder(StoredSummaries, strict=False)  # the last value is a text: it may be nan
_MANY = msgspec.json.Decoder(list[StoredSummaries], strict=False)


def read_stored_summaries(text: str) -> StoredSummaries:
    """Return the stored metrics of an experiment.

    Raises:
        ValueError: the text is something else.
    """
    return _DECODER.decode(text)


def read_many_summaries(texts: Iterable[str]) -> list[StoredSummaries]:
    """Return the stored metrics of many experiments at once, which is faster than one by one.

    Raises:
        ValueError: a text is something else.
    """
    return _MANY.decode(f"[{','.join(texts)}]")
