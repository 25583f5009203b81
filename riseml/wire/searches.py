"""A set whose points a search chooses."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen
from typing_extensions import TypedDict

from riseml.wire.results import ObjectiveView
from riseml.wire.submissions import Name, Value


class BestTrial(TypedDict):
    """The best trial of a search so far."""

    id: str  # ID of its experiment: `144.3`
    value: float  # value of the metric; of several runs their mean
    parameters: dict[str, str]
    runs: int  # of this point; above 1, `id` is the first one


class SearchView(TypedDict):
    """What a search does, and what it has found."""

    method: str  # `tpe`
    metric: str  # the name of the metric; with several objectives, the first one
    goal: Literal["maximize", "minimize"]
    objective: str  # which value of a run counts: `best`, `mean(5)`
    objectives: list[ObjectiveView]  # all of them
    seed: int
    trials: int  # in all
    repeat: int  # runs of each trial, with another seed each
    made: int  # so far, each with an experiment of the set, or with several (`repeat`)  # names: of the API
    running: int  # experiments that have not ended
    complete: int  # trials that ended well, and reported the metric
    stopped: int  # trials that were stopped early
    failed: int  # trials that failed or were killed, or reported no metric
    best: BestTrial | None  # None: no trial has ended well, or there are several objectives
    front: list[str]  # with several objectives: IDs of the experiments that none beats in all
    end: str | None  # why no further trial follows: `COMPLETED`; None: further ones may follow
    message: str  # all of this for people: `trial 7 of 40, best 144.3 accuracy 0.981`
    next: str  # what it does next and what it waits for, as a sentence
    variables: list[str]  # names of the caller's variables that its trials get


class SetChangeRequest(TypedDict):
    """A change of a set that goes on, with a search or without one."""

    paused: bool | None  # true: no further experiment of it starts; false: they start again; null: as it is
    concurrency: Annotated[int, Ge(1), Le(10000)] | None  # how many run at the same time; null: as it is
    stop: bool  # what has not begun never begins, and what runs goes on


class TrialRequest(TypedDict):
    """A request for further trials of a set."""

    trials: Annotated[int, Ge(1), Le(1000)]  # how many
    environment: Annotated[dict[Name, Value], MaxLen(1000)]  # the caller's variables that `train.env` names
