"""Metrics as they cross the wire."""

from __future__ import annotations

import math
from collections.abc import Iterable

from riseml import wire
from riseml.store.metrics.metric_history import Bucket
from riseml.store.metrics.metric_summary import MetricSummary


def show_number(value: float) -> float | str:
    """Return a number for JSON: NaN and infinity as texts."""
    return value if math.isfinite(value) else str(value)


def show_summary(summary: MetricSummary) -> wire.MetricView:
    """Return one metric."""
    return {
        "name": summary.name,
        "count": summary.count,
        "last": show_number(summary.last),
        "last_step": summary.last_step,
        "last_at": summary.last_at,
        "min": summary.minimum,
        "min_step": summary.minimum_step,
        "max": summary.maximum,
        "max_step": summary.maximum_step,
        "attempt": summary.attempt,
        "not_finite": summary.not_finite,
    }


def show_history(identity: str, metric: str, buckets: Iterable[Bucket]) -> wire.MetricHistoryView:
    """Return the history of one metric."""
    return {"id": identity, "metric": metric, "buckets": [_show_bucket(bucket) for bucket in buckets]}


def _show_bucket(bucket: Bucket) -> wire.MetricBucket:
    return {
        "first_step": bucket.first_step,
        "last_step": bucket.last_step,
        "first_at": bucket.first_at,
        "last_at": bucket.last_at,
        "min": bucket.minimum,
        "mean": bucket.mean,
        "max": bucket.maximum,
        "count": bucket.count,
        "not_finite": bucket.count - bucket.finite,
    }
