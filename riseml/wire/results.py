"""The results of experiments: one row for each, in the requested order."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from riseml.wire.metrics import MetricView
from riseml.wire.state_names import StateName


class ObjectiveView(TypedDict):
    """What experiments are ranked by."""

    metric: str
    goal: Literal["maximize", "minimize"]
    rule: str  # which value of a run counts, as `search.objective` has it: `best`, `mean(5)`
    words: str  # all of this for people: `the largest mean of the last 5 values of accuracy`


class ResultView(TypedDict):
    """What came out of one experiment."""

    id: str  # `144.3`
    project: str
    rank: int | None  # 1 is the best; equal values have equal ranks. null: it failed, has no value, or nothing ranks
    value: float | None  # the value of the objective; null: it has none, or nothing ranks
    state: StateName
    reason: str  # name of a Reason: `EXIT_CODE`
    parameters: dict[str, str]
    metrics: list[MetricView]  # in the order in which they were first reported
    workers: int  # jobs that train: without parameter servers and what only watches
    hosts: list[str]  # hosts of its jobs
    seconds: float | None  # for how long it has run; null: it has not run yet
    started_at: str | None  # RFC 3339
    ended_at: str | None  # RFC 3339


class ResultList(TypedDict):
    """Experiments with their results."""

    objective: ObjectiveView | None  # null: no goal is known, and nothing is ranked
    total: int  # experiments that were looked at
    matched: int  # how many of these meet the conditions
    parameters: list[str]  # whose values differ among these
    same: dict[str, str]  # parameters that all of these have alike, with their values
    metrics: list[str]  # names of all metrics that these have reported
    best: ResultView | None  # the best of these; null: nothing is ranked
    experiments: list[ResultView]  # in the requested order, at most the requested number
    notes: list[str]  # what conditions and order may not be expected to do: a parameter that mixes numbers and texts
