"""The results of experiments: one row for each, in the requested order."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from riseml.wire.metrics import MetricView
from riseml.wire.progress import ProgressView
from riseml.wire.state_names import StateName


class ObjectiveView(TypedDict):
    """What experiments are ranked by."""

    metric: str
    goal: Literal["maximize", "minimize"]
    rule: str  # which value of a run counts, as `search.objective` has it: `best`, `mean(5)`
    words: str  # all of this for people: `the largest mean of the last 5 values of accuracy`


class ResultView(TypedDict):
    """What came out of one experiment."""

    id: str  # `144.3`; of another user `paul.144.3`
    user: NotRequired[str]  # whose it is; absent from a server of an earlier version
    project: str
    created_at: NotRequired[str]  # RFC 3339; absent from a server of an earlier version
    name: str  # that a user has given it, or its set; empty: none
    tags: list[str]  # its own, then those of its set
    note: str  # Markdown of a user; empty: none
    starred: bool  # it, or its set
    archived: bool  # it, or its set
    # 1 is the best; equal values have equal ranks, and with several objectives all of one front
    rank: int | None  # null: it failed, has no value, or nothing ranks
    value: float | None  # the value of the objective; null: it has none, there are several objectives, or nothing ranks
    scores: dict[str, float]  # with several objectives, their values by the metrics; empty with one
    state: StateName
    reason: str  # name of a Reason: `EXIT_CODE`
    parameters: dict[str, str]
    metrics: list[MetricView]  # in the order in which they were first reported
    workers: int  # jobs that train: without parameter servers and what only watches
    hosts: list[str]  # hosts of its jobs
    seconds: float | None  # for how long it has run; null: it has not run yet
    started_at: str | None  # RFC 3339
    ended_at: str | None  # RFC 3339
    generation: NotRequired[int]  # of a trial of a population, from 1; absent: it is none
    parent: NotRequired[str]  # `144.3`: the trial whose files it began with; absent: it began with none
    gpus: NotRequired[int]  # that its jobs asked for; absent: a server of an earlier version says nothing of it


class GroupRunView(TypedDict):
    """One run of a group that has a value."""

    id: str  # `144.3`
    seed: str | None  # null: it has none
    value: float


class GroupView(TypedDict):
    """Runs that differ in their seed alone."""

    ids: list[str]  # all of them, the first run first
    # by the mean; null: a run failed, has no value, was stopped, goes on or is beyond the constraints, or nothing ranks
    rank: int | None
    parameters: dict[str, str]  # without the seed
    n: int  # values
    mean: float | None  # null: there is no value
    deviation: float | None  # with n - 1; null: there are fewer than two values
    low: float | None  # 95% interval of the mean, by bootstrap; null: there are fewer than two values
    high: float | None
    runs: list[GroupRunView]  # that have finished with a value
    failed: int  # runs that failed or were killed, or finished without a value
    stopped: int  # runs that were stopped early
    unfinished: int
    beyond: int  # runs that fail a constraint of their search


class GroupList(TypedDict):
    """Experiments, grouped by their parameters without the seed."""

    objective: ObjectiveView | None  # null: nothing is ranked
    column: str  # whose values these are: `accuracy`, `loss.last`
    total: int  # experiments that were looked at
    matched: int  # how many of these meet the conditions
    parameters: list[str]  # whose values differ between the groups
    same: dict[str, str]  # parameters that all groups have alike, with their values
    best_run: GroupRunView | None  # the best single run, which may be a lucky seed; null: nothing is ranked
    groups: list[GroupView]  # by rank; the others after them


class ResultList(TypedDict):
    """Experiments with their results."""

    objective: ObjectiveView | None  # null: no goal is known, or there are several
    objectives: list[ObjectiveView]  # all that rank; empty: nothing is ranked
    total: int  # experiments that were looked at
    archived: int  # archived ones that were left out
    matched: int  # how many of these meet the conditions
    parameters: list[str]  # whose values differ among these
    same: dict[str, str]  # parameters that all of these have alike, with their values
    metrics: list[str]  # names of all metrics that these have reported
    best: ResultView | None  # the best of these; null: nothing is ranked, or by several objectives
    experiments: list[ResultView]  # in the requested order, at most the requested number
    notes: list[str]  # what conditions and order may not be expected to do: a parameter that mixes numbers and texts


class GroupCurve(TypedDict):
    """The mean curve of a group of experiments: lists of the same length, one number for each point."""

    label: str  # `lr=0.1`, a tag
    ids: list[str]  # experiments of the group that have reported the metric
    x: list[float]
    n: list[int]  # experiments that have a value there, from the first step of each to its last one
    mean: list[float]  # of these
    low: list[float]  # the least value
    high: list[float]
    error: list[float | None]  # standard error of the mean; null: one experiment has a value there


class GroupCurveList(TypedDict):
    """The curves of experiments, grouped by a parameter or a tag."""

    metric: str
    by: str
    x: Literal["step", "report"]  # `report`: values without a step are counted
    total: int  # groups; the answer has 50 at most
    groups: list[GroupCurve]


class TableColumn(TypedDict):
    """One column that a table can have."""

    name: str  # as `--sort`, `--where` and `--columns` read it: `lr`, `metrics.time`, `"val loss".min`
    kind: Literal["own", "parameters", "metrics"]  # `own`: riseml's, such as the state
    part: str  # of a metric: `last`, `min`; empty: it has none, or is the value that ranks, else the last one
    differs: bool  # between the experiments that meet the conditions


class TableLine(TypedDict):
    """One line of a table: an experiment, or a group of them."""

    id: str  # `144.3`; empty: it is a group
    group: str  # what opens it, of a group; empty: it is an experiment
    count: int  # experiments of the group; 1 of an experiment
    ended: int  # of these
    open: bool  # its experiments follow
    inside: bool  # it is an experiment of an open group
    user: str  # whose the first one is
    team_project: str | None  # whose members see it; null: it belongs to its user alone
    may_change: bool  # the caller may change all of them
    state: StateName | None  # of a set what its members are together; null: those of another group are in several
    progress: ProgressView | None  # how far one that runs is; null: not known
    latest: str  # the last line of its log while it runs; of a search what it does; empty: neither
    # in the order of the columns: a text, a number (NaN and infinity as texts), or null
    cells: list[str | float | None]
    mixed: list[
        int
    ]  # places of cells whose experiments differ: a number is their mean, and a text says how many values


class TableView(TypedDict):
    """A page of a table of experiments."""

    objectives: list[ObjectiveView]  # all that rank; empty: nothing is ranked
    total: int  # experiments that were looked at
    archived: int  # archived ones that were left out
    matched: int  # experiments that meet the conditions
    lines: int  # of the whole table: experiments, or groups and the experiments of open ones
    columns: list[str]  # names of the columns of `rows`
    available: list[TableColumn]  # all that the table can have; empty unless `available` asks for them
    rows: list[TableLine]  # of this page
    notes: list[
        str
    ]  # what may be unexpected: a column that no experiment has, a parameter that mixes numbers and texts


class SavedTableRequest(TypedDict):
    """A view of the table that a user saves."""

    project: str  # empty: of all experiments
    name: str
    query: str  # what the address says: `sort=-accuracy&column=lr`
    default: bool  # the table of the project begins with it


class SavedTableName(TypedDict):
    """Which view is meant."""

    project: str  # empty: of all experiments
    name: str
    user: NotRequired[str]  # who has saved it; absent: the caller


class SavedTableView(TypedDict):
    """A saved view of the table."""

    user: str  # who has saved it
    project: str  # empty: of all experiments
    name: str
    query: str  # what the address says: `sort=-accuracy&column=lr`
    default: bool  # the table of the project begins with it


class SavedTableList(TypedDict):
    """The saved views of a project."""

    views: list[SavedTableView]  # the caller's own first
    projects: list[str]  # of the caller's experiments
