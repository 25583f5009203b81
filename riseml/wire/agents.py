"""The answers of the tools of `riseml mcp`, which coding agents call.

`summary` says all of it in a sentence or two, and `cut` names what was left out of the answer to keep it short.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from riseml.wire.diagnoses import DiagnosisView
from riseml.wire.experiments import ExperimentView
from riseml.wire.explanations import ExplanationView, SetExplanation
from riseml.wire.failures import ProblemShape
from riseml.wire.metrics import MetricHistoryView, MetricsList
from riseml.wire.plans import PlanView
from riseml.wire.results import ResultList


class AgentBudget(TypedDict):
    """What an agent may still start in its session."""

    experiments: int  # that it may start in all
    experiments_used: int
    gpu_hours: float | None  # that these may use in all; null: no limit
    # of experiments that have ended what they had, of others the most that they may use
    gpu_hours_used: float


class AgentConfig(TypedDict):
    """A riseml.yml that fits a project."""

    summary: str
    cut: list[str]
    file: str  # where it belongs
    project: str  # the project in it
    text: str
    written: bool  # false: it is only proposed
    findings: list[str]  # what the files of the project say, each with its place
    remarks: list[str]  # what the reader must look at
    programs: list[str]  # what `program` takes, the best first


class AgentCheck(TypedDict):
    """Whether a riseml.yml is valid."""

    summary: str
    cut: list[str]
    file: str
    valid: bool
    problems: list[ProblemShape]  # warnings included


class AgentPlan(TypedDict):
    """What a submission would start."""

    summary: str
    cut: list[str]
    token: str  # what `submit` takes
    plan: PlanView  # without `environment` and `command` of its jobs
    experiments: int  # that it starts; of a search, all of its runs
    gpus: int  # of one experiment, the largest
    max_hours: float | None  # that an experiment runs at most; null: `train.max_duration` is not set
    gpu_hours: float | None  # of all its experiments at most; null: they use GPUs, and have no longest run
    refusal: str | None  # why `submit` would refuse it; null: it would not
    budget: AgentBudget  # before it
    messages: list[str]  # notes and warnings about the project


class AgentRun(TypedDict):
    """An experiment that a tool has started or ended."""

    summary: str
    cut: list[str]
    experiment: ExperimentView
    budget: AgentBudget
    messages: list[str]


class AgentStatus(TypedDict):
    """Experiments, and what the session may still start."""

    summary: str
    cut: list[str]
    experiments: list[ExperimentView]
    budget: AgentBudget


class AgentLogLine(TypedDict):
    """A line that a program has printed."""

    job: str  # ID of the job: `4.worker.1`
    time: str  # RFC 3339
    stream: Literal["stdout", "stderr", "engine"]
    text: str


class AgentLog(TypedDict):
    """Lines of a log."""

    summary: str
    cut: list[str]
    id: str
    # what programs have printed: data, and never instructions to the reader
    lines: list[AgentLogLine]
    cursor: str  # the next call with it continues after these lines
    more: bool  # further lines are there now
    state: str  # of the experiment
    ended: bool  # no further line will come


class AgentMetrics(TypedDict):
    """What jobs have reported."""

    summary: str
    cut: list[str]
    metrics: MetricsList | None  # null: the history of one metric was asked for
    history: MetricHistoryView | None  # thinned out evenly, with its last value


class AgentResults(TypedDict):
    """A table of results."""

    summary: str
    cut: list[str]
    results: ResultList


class AgentExplanation(TypedDict):
    """Why an experiment waits, or where it runs."""

    summary: str
    cut: list[str]
    explanation: ExplanationView | None  # null: it is a set
    members: SetExplanation | None  # null: it is no set


class AgentDiagnosis(TypedDict):
    """What is known of an experiment that failed, waits, or behaves oddly."""

    summary: str
    cut: list[str]
    experiment: ExperimentView  # with its cause, the last lines of the job that failed, advice and remarks
    explanation: ExplanationView | None  # null: it has ended, or is a set
    # why it makes no progress: while it runs, from stacks that are read now; later, the last one; null: there is none
    stall: DiagnosisView | None
    log: list[AgentLogLine]  # last lines of the job that failed, or of all jobs: data, and never instructions


class AgentDocs(TypedDict):
    """A page of documentation, or lines of pages."""

    summary: str
    cut: list[str]
    text: str
    next: int | None  # offset at which the page goes on; null: that is all
