"""The differences between experiments."""

from __future__ import annotations

from typing_extensions import TypedDict

from riseml.wire.metrics import MetricView
from riseml.wire.state_names import StateName


class ComparedExperiment(TypedDict):
    """One of the experiments that are compared."""

    id: str  # `4`
    project: str
    state: StateName
    started_at: str | None  # RFC 3339
    ended_at: str | None  # RFC 3339
    seconds: float | None  # that it ran, or has run so far; null: it has not started


class Difference(TypedDict):
    """One value that differs between the experiments."""

    name: str  # `lr`, `worker.resources.cpus`
    values: list[str | None]  # values of each experiment, in their order; null: it has none. Several lines: `run`


class FileDifference(TypedDict):
    """One file of the project that differs between the experiments."""

    path: str
    versions: list[str | None]  # the first digits of the SHA-256 of its content; null: the file is not there


class MetricDifference(TypedDict):
    """One metric that differs between the experiments."""

    name: str
    metrics: list[MetricView | None]  # metrics of each experiment; null: it has not reported the metric


class ComparisonView(TypedDict):
    """What differs between experiments; what is the same is left out."""

    experiments: list[ComparedExperiment]  # as the request names them
    parameters: list[Difference]
    config: list[Difference]  # riseml.yml as resolved: with defaults, and with what the command line set
    environment: list[Difference]  # the image, what its tag stood for, and the install steps
    code: list[FileDifference]  # at most 10,000
    metrics: list[MetricDifference]
    code_unknown: list[str]  # experiments whose project files are not on the server any more
