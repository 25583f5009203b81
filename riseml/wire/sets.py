"""What a page shows of a whole set: the curves of its experiments, and which parameters decide."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class Curve(TypedDict):
    """How a metric of one experiment changed: lists of the same length. None: unknown."""

    id: str  # ID of the experiment: `144.3`
    step: list[int | None]
    at: list[str]  # RFC 3339
    mean: list[float | None]  # mean of the finite values since the point before
    min: list[float | None]  # least finite value since the point before
    max: list[float | None]
    not_finite: list[int]  # values since the point before that are nan or infinite


class CurveList(TypedDict):
    """How a metric of the experiments of a set changed."""

    metric: str
    total: int  # experiments of the set that have reported it
    curves: list[Curve]  # curves of the newest experiments, at most 1,000; together at most 20,000 points


class ParameterImportance(TypedDict):
    """How much one parameter decides."""

    name: str
    importance: float  # its share; all together are 1


class ImportanceTable(TypedDict):
    """How much each parameter decides one metric, as Optuna computes it (PED-ANOVA)."""

    metric: str
    goal: Literal["maximize", "minimize"]
    trials: int  # that have a value, and so count
    stopped: int  # how many of these were stopped early; they count with the best value that they had reported
    parameters: list[ParameterImportance]  # the largest first; empty: see `message`
    message: str  # why there are none: `4 of the 10 trials that this takes have a value.`
    when: str  # `optimizer is sgd`: over the trials that have the parameters of this condition; empty: over all


class ImportanceView(TypedDict):
    """How much each parameter of a search decides its metrics."""

    id: str  # ID of the set
    tables: list[ImportanceTable]  # for each objective over all trials, then over the trials of each condition
