"""The history of a metric in a bounded number of buckets. Pure.

A bucket holds successive values. When there are too many buckets, each two neighbours become one, and each
later bucket holds twice as many values. So the buckets depend on the sequence of the values alone, and not on how often
the server counted or stopped in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from riseml.base.records import dataclass

MOST_BUCKETS = 256
"""An even number."""

_TOLERANCE = 1e-6  # of two values that may be one number, with 24 bits and with 53
_TINY = 1e-37  # numbers below have fewer bits


@dataclass(frozen=True, slots=True)
class Bucket:
    """Values of a metric that follow each other."""

    first_step: int | None  # None: reported without a step
    last_step: int | None
    first_at: str  # timestamp of the first value, as the engine wrote it
    last_at: str
    minimum: float | None  # None: no value is finite
    mean: float | None
    maximum: float | None
    count: int  # values, those that are not finite included
    finite: int  # values that are finite


@dataclass(slots=True)
class _OpenBucket:
    """The last bucket, which takes further values."""

    first_step: int | None
    first_at: str
    last_step: int | None = None
    last_at: str = ""
    minimum: float = math.inf
    mean: float = 0.0
    maximum: float = -math.inf
    count: int = 0
    finite: int = 0

    def close(self) -> Bucket:
        has_finite = self.finite > 0
        return Bucket(
            *(self.first_step, self.last_step, self.first_at, self.last_at),
            self.minimum if has_finite else None,
            self.mean if has_finite else None,
            self.maximum if has_finite else None,
            self.count,
            self.finite,
        )


class MetricHistory:
    """Takes the values of one metric in order."""

    def __init__(self) -> None:
        self._full: list[Bucket] = []
        self._width = 1  # values of a full bucket
        self._open: _OpenBucket | None = None

    def add(self, value: float, step: int | None, at: str) -> None:
        """Take the next value."""
        bucket = self._open
        if bucket is None:
            bucket = self._open = _OpenBucket(step, at)
        bucket.last_step = step
        bucket.last_at = at
        bucket.count += 1
        if -math.inf < value < math.inf:
            finite = bucket.finite = bucket.finite + 1
            if value < bucket.minimum:
                bucket.minimum = value
            if value > bucket.maximum:
                bucket.maximum = value
            bucket.mean = bucket.mean * ((finite - 1) / finite) + value / finite
        self._close_full(bucket)

    def add_finite(self, values: Sequence[float], steps: Sequence[int | None], stamps: Sequence[bytes]) -> None:
        """Take many finite values that follow each other, as `add` does, in a fraction of the time."""
        position = 0
        while position < len(values):
            bucket = self._open
            if bucket is None:
                bucket = self._open = _OpenBucket(steps[position], stamps[position].decode())
            end = min(len(values), position + self._width - bucket.count)
            some = values[position:end]
            bucket.last_step = steps[end - 1]
            bucket.last_at = stamps[end - 1].decode()
            bucket.count += len(some)
            bucket.minimum = min(bucket.minimum, min(some))
            bucket.maximum = max(bucket.maximum, max(some))
            mean = bucket.mean
            finite = bucket.finite
            for value in some:
                finite += 1
                mean = mean * ((finite - 1) / finite) + value / finite
            bucket.mean = mean
            bucket.finite = finite
            position = end
            self._close_full(bucket)

    def _close_full(self, bucket: _OpenBucket) -> None:
        """Close the open bucket when it has all of its values."""
        if bucket.count == self._width:
            self._full.append(bucket.close())
            self._open = None
            if len(self._full) == MOST_BUCKETS:
                self._halve()

    def read_buckets(self) -> tuple[Bucket, ...]:
        """Return the buckets in the order of their values."""
        return (*self._full, self._open.close()) if self._open is not None else tuple(self._full)

    def agrees_with(self, other: MetricHistory) -> bool:
        """Return True when the two curves have the same values, as far as both go: one of them may be behind. Files of
        TensorBoard have floats of 32 bits.
        """
        buckets = self._full if self._full else list(self.read_buckets())
        other_buckets = other._full if other._full else list(other.read_buckets())
        own_width = self._width
        while own_width < other._width:
            buckets = _join_pairs(buckets)
            own_width *= 2
        while own_width > other._width and other_buckets:
            other_buckets = _join_pairs(other_buckets)
            own_width //= 2
        return all(_is_same(first, second) for first, second in zip(buckets, other_buckets, strict=False))

    def to_rows(self) -> list[Any]:
        """Return the history as JSON values."""
        return [self._width, *(_to_row(bucket) for bucket in self.read_buckets())]

    @classmethod
    def from_rows(cls, rows: list[Any]) -> MetricHistory:
        """Return the history that `to_rows` wrote."""
        history = cls()
        history._width = rows[0]
        history._full = [Bucket(*row) for row in rows[1:]]
        if history._full and history._full[-1].count < history._width:
            history._open = _reopen(history._full.pop())
        return history

    def _halve(self) -> None:
        """Join each two neighbours."""
        self._full = _join_pairs(self._full)
        self._width *= 2


def join_neighbours(buckets: Sequence[Bucket], most: int) -> list[Bucket]:
    """Return at most `most` buckets over the same values: successive ones become one, with the extremes of all."""
    width = -(-len(buckets) // most)
    if width <= 1:
        return list(buckets)
    return [reduce(_join_buckets, buckets[start : start + width]) for start in range(0, len(buckets), width)]


def _join_pairs(buckets: Sequence[Bucket]) -> list[Bucket]:
    """Return each two neighbours as one; a last one without a neighbour is left out."""
    return [_join_buckets(first, second) for first, second in zip(buckets[::2], buckets[1::2], strict=False)]


def _is_same(first: Bucket, second: Bucket) -> bool:
    steps = {(bucket.first_step, bucket.last_step) for bucket in (first, second)} - {(None, None)}
    numbers = [(bucket.minimum, bucket.mean, bucket.maximum) for bucket in (first, second)]
    return len(steps) < 2 and first.finite == second.finite and all(map(_is_near, *numbers))


def _is_near(number: float | None, other: float | None) -> bool:
    if number is None or other is None:
        return number is other
    return math.isclose(number, other, rel_tol=_TOLERANCE, abs_tol=_TINY)


def _join_buckets(first: Bucket, second: Bucket) -> Bucket:
    parts = [part for part in (first, second) if part.finite]
    both = replace(
        first,
        last_step=second.last_step,
        last_at=second.last_at,
        count=first.count + second.count,
        finite=first.finite + second.finite,
        minimum=min((part.minimum for part in parts if part.minimum is not None), default=None),
        maximum=max((part.maximum for part in parts if part.maximum is not None), default=None),
    )
    mean = _join_means(first.mean or 0.0, first.finite, second.mean or 0.0, second.finite)
    return replace(both, mean=mean if parts else None)


def _join_means(first: float, count: int, second: float, more: int) -> float:
    """Return the mean of `count` values and `more` others. No sum: it could be too large for a number."""
    total = count + more
    return first * (count / total) + second * (more / total) if total else 0.0


def _to_row(bucket: Bucket) -> list[Any]:
    return [
        *(bucket.first_step, bucket.last_step, bucket.first_at, bucket.last_at),
        *(bucket.minimum, bucket.mean, bucket.maximum, bucket.count, bucket.finite),
    ]


def _reopen(bucket: Bucket) -> _OpenBucket:
    opened = _OpenBucket(bucket.first_step, bucket.first_at, bucket.last_step, bucket.last_at)
    opened.count = bucket.count
    opened.finite = bucket.finite
    if bucket.minimum is not None and bucket.maximum is not None:
        opened.minimum = bucket.minimum
        opened.mean = bucket.mean or 0.0
        opened.maximum = bucket.maximum
    return opened
