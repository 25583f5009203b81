"""What jobs report: metrics of experiments, and their histories.

JSON has no nan: a value that is not finite is one of the texts "nan", "inf" and "-inf".
"""

from __future__ import annotations

from typing_extensions import TypedDict


class MetricView(TypedDict):
    """One metric of an experiment, over all of its jobs and attempts."""

    name: str
    count: int  # values that were reported
    last: float | str  # the last value
    last_step: int | None  # its step; null: reported without a step
    last_at: str  # when it was reported, RFC 3339
    min: float | None  # the smallest finite value; null: no value is finite
    min_step: int | None  # the first step with it
    max: float | None
    max_step: int | None
    attempt: int  # attempt of the job that reported the last value; above 1 a retry has reported
    not_finite: int  # values that are nan or infinite


class MainMetric(TypedDict):
    """The metric that a list shows of an experiment: what its set searches for, else the first one that it reported."""

    name: str
    last: float | None  # the last value, at most some seconds old; null: it is not finite


class ExperimentMetrics(TypedDict):
    """The metrics of one experiment."""

    id: str
    metrics: list[MetricView]  # in the order in which they were first reported
    dropped: int  # values that were not kept, because the experiment reported too many different names
    slow: list[str]  # patterns of train.metrics that took too long, and are not searched any more


class MetricsList(TypedDict):
    """The metrics of an experiment, or of each experiment of a set."""

    experiments: list[ExperimentMetrics]


class MetricBucket(TypedDict):
    """Successive values."""

    first_step: int | None  # null: reported without a step
    last_step: int | None
    first_at: str  # RFC 3339
    last_at: str
    min: float | None  # least finite value; null: none is finite
    mean: float | None
    max: float | None
    count: int  # values, those that are not finite included
    not_finite: int  # of these, how many are nan or infinite


class MetricHistoryView(TypedDict):
    """The history of one metric, in at most 256 buckets."""

    id: str  # ID of the experiment
    metric: str
    buckets: list[MetricBucket]  # in the order in which they were reported


class MetricNames(TypedDict):
    """The metrics of all experiments."""

    names: list[str]  # at most 1,000, the most frequent first


class MetricLastValues(TypedDict):
    """The last value of one metric in each experiment that has reported it; it may be a few seconds old."""

    metric: str
    values: dict[str, float | None]  # by ID; null: the last value is not finite
