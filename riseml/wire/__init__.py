"""The shapes that cross the HTTP door, shared by client and server.

They are the documented shapes of `--json` too, so that a field here is a promise: it may be added to, not renamed.
Times are RFC 3339 in UTC (`2026-08-31T07:23:46Z`), memory is in bytes unless the name says otherwise, IDs are
canonical.

    GET    /v1/server                          -> Server
    POST   /v1/server/stop                     -> Server          (training goes on)
    HEAD   /v1/snapshots/{digest}              -> 200 | 404
    PUT    /v1/snapshots/{digest}   tar body   -> 201
    POST   /v1/experiments          Submission -> Experiment (201; 200 when `key` was used before)
    POST   /v1/experiments/check    Submission -> 204             (or what the line above would be refused with)
    POST   /v1/plans                Submission -> Plan            (nothing is stored)
    GET    /v1/experiments?all=&project=&limit= -> Experiments    (running ones; all: ended ones too; newest last)
    GET    /v1/experiments/{id}                -> Experiment
    POST   /v1/experiments/{id}/kill           -> Experiment
    GET    /v1/experiments/{id}/logs?follow=&cursor=&tail=&since=&batch=&closed=
                                               -> NDJSON of Entry   (tail: so many lines of what is there, no states)
    GET    /v1/experiments/{id}/samples        -> Samples
    GET    /v1/experiments/{id}/tfconfig       -> TfConfigs       (of one experiment; a set is refused)
    GET    /v1/experiments/{id}/explain        -> Explanation     (of one experiment; a set is refused)
    GET    /v1/system                          -> System
    GET    /v1/pool                            -> Pool
    POST   /v1/pool/check                      -> PoolFindings
    POST   /v1/pool/join                       -> PoolMembers
    POST   /v1/pool/hosts/{name}/drain|resume  -> Host
    GET    /v1/pool/hosts/{name}/keys          -> HostKeys
    POST   /v1/pool/hosts/{name}/keys?fingerprint=&... -> HostKeys    (pins those)
    GET    /v1/leftovers?caches=&days=&foreign= -> Leftovers
    POST   /v1/leftovers/remove?...            -> Leftovers       (the same ones, removed)
Every refusal is a `Failure`. `{id}` is a canonical ID; where it names jobs (`4.ps`), the answer holds those jobs only.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from annotated_types import MaxLen  # bounds that pydantic checks and OpenAPI shows
from typing_extensions import TypedDict  # the one that pydantic can read before Python 3.12

from riseml.wire.done import Kill, Kills, NewFile, ServerStop
from riseml.wire.leftovers import (
    LeftoversView,
    LeftoverView,
)
from riseml.wire.pool import (
    BlockerView,
    ExplanationView,
    HostFinding,
    HostFindings,
    HostFitView,
    HostKeys,
    HostKeyView,
    HostView,
    JobFitView,
    JobPlaceView,
    PoolFinding,
    PoolFindings,
    PoolMember,
    PoolMembers,
    PoolView,
    QueuePlaceView,
    ShortageView,
)
from riseml.wire.words import StateName

__all__ = [
    "BlockerView",
    "ExplanationView",
    "HostFinding",
    "HostFindings",
    "HostFitView",
    "HostKeyView",
    "HostKeys",
    "HostView",
    "JobFitView",
    "JobPlaceView",
    "Kill",
    "Kills",
    "LeftoverView",
    "LeftoversView",
    "NewFile",
    "PoolFinding",
    "PoolFindings",
    "PoolMember",
    "PoolMembers",
    "PoolView",
    "QueuePlaceView",
    "ServerStop",
    "ShortageView",
    "StateName",
]  # from the modules beside this one


Name = Annotated[str, MaxLen(256)]
Value = Annotated[str, MaxLen(2**17)]
"""What one variable or argument of a Linux process may have."""
Pairs = Annotated[list[tuple[Name, Value]], MaxLen(1000)]


class ServerView(TypedDict):
    """Who answers. `active` counts the experiments that have not ended; `engine` is the address of the local engine.

    `executor` is `docker` or `process`; `note` is a line for people: no engine answered when it was chosen, or
    pool.yml cannot be used.
    """

    version: str
    id: str
    pid: int
    started_at: str
    home: str
    executor: str
    note: str
    engine: str
    active: int


class Submission(TypedDict):
    """A request to run something. `key` makes a repeated POST harmless; `environment` is what `env` passes through."""

    project: Name
    file: Annotated[str, MaxLen(4096)]
    config: Annotated[str, MaxLen(2**20)]
    key: NotRequired[Annotated[str, MaxLen(64)]]
    snapshot: NotRequired[Annotated[str, MaxLen(64)]]
    parameters: NotRequired[Pairs]
    settings: NotRequired[Pairs]
    environment: NotRequired[Annotated[dict[Name, Value], MaxLen(1000)]]


class JobView(TypedDict):
    """One job. `signal` is the name of the signal that ended it, if one did."""

    id: str
    name: str
    state: StateName
    reason: str
    message: str
    host: str | None
    attempt: int
    exit_code: int | None
    signal: str | None
    oom: bool
    cpus: float
    mem_mib: int
    gpus: int
    started_at: str | None
    ended_at: str | None


class ExperimentView(TypedDict):
    """One experiment, or a whole set (`type` "set": its members are in `experiments`, it has no jobs of its own).

    `cause` names the job that decided a bad end and `last_lines` are its last ones (in answers about one experiment);
    `closed` means that nothing of it is left on any host.
    """

    id: str
    user: str
    project: str
    type: Literal["experiment", "set"]
    state: StateName
    reason: str
    message: str
    cause: str | None
    last_lines: list[str]
    created_at: str
    started_at: str | None
    ended_at: str | None
    image: str
    framework: str
    parameters: dict[str, str]
    output: str
    exit_code: int | None
    closed: bool
    jobs: list[JobView]
    experiments: list[ExperimentView]
    notes: list[str]


class ExperimentList(TypedDict):
    """A list of experiments without their jobs' details being left out; oldest first."""

    experiments: list[ExperimentView]


class StateEntry(TypedDict):
    """A change of state. `id` is the experiment's or the job's."""

    type: Literal["state"]
    cursor: str
    id: str
    time: str
    state: StateName
    reason: str
    sentence: str
    message: str
    exit_code: int | None


class LineEntry(TypedDict):
    """One line of output, without its newline. Bytes that are no UTF-8 are replaced."""

    type: Literal["line"]
    cursor: str
    id: str
    time: str
    stream: Literal["stdout", "stderr", "engine"]
    text: str


class LinesEntry(TypedDict):
    """With `batch`: lines of one job that stand together, each as `<time> <text>\\n`."""

    type: Literal["lines"]
    cursor: str
    id: str
    stream: Literal["stdout", "stderr", "engine"]
    text: str


class EndEntry(TypedDict):
    """The stream is complete: everything that will ever come has come, and nothing of the experiment runs.

    Unless `closed=false` was asked, nothing of it is left on the hosts either.
    """

    type: Literal["end"]
    cursor: str
    id: str
    state: StateName
    exit_code: int | None
    reason: str
    message: str
    cause: str | None


class PingEntry(TypedDict):
    """Sent every 15 s when nothing else is, so that a dead connection is noticed, and once behind a `tail`."""

    type: Literal["ping"]
    cursor: str


Entry = StateEntry | LineEntry | LinesEntry | EndEntry | PingEntry


class SampleView(TypedDict):
    """How a job is doing. Percentages: `cpu` of one core, `mem` of what the job may use, `gpu` of its GPUs."""

    id: str
    project: str
    state: StateName
    host: str | None
    time: str | None
    cpu: float | None
    mem: float | None
    mem_used: int | None
    mem_total: int | None
    gpu: float | None
    gpu_mem: float | None
    gpu_mem_used: int | None
    gpu_mem_total: int | None


class Samples(TypedDict):
    """One sample a job, in the order of the jobs."""

    samples: list[SampleView]


class PlanJob(TypedDict):
    """One job of a plan, with the environment and the command as they will be.

    `host` is where it would run if it were submitted now, None when it would wait. `limit_*` are hard caps, None: none.
    `run` are the user's lines with every placeholder filled, `command` the process that runs them. `passed_on` names
    the variables whose values come from the caller and are never shown; they are not in `environment`.
    """

    name: str
    part: str
    host: str | None
    cpus: float
    mem_mib: int
    gpus: int
    limit_cpus: float | None
    limit_mem_mib: int | None
    shm_mib: int
    environment: dict[str, str]
    passed_on: list[str]
    run: list[str]
    command: list[str]


class PlanExperiment(TypedDict):
    """One point of the grid. `id` and `output` are those of the next experiment as things are; `waits` says why it
    would not start at once, None when it would.
    """

    id: str
    output: str
    waits: str | None
    parameters: dict[str, str]
    jobs: list[PlanJob]


class PlanView(TypedDict):
    """What `train` would do.

    `cached` is None when no host could be asked, or when the project's files, which install steps may read, are not at
    the server; then `image` is only the base.
    """

    project: str
    framework: str
    image: str
    base: str
    install: list[str]
    cached: bool | None
    experiments: list[PlanExperiment]
    notes: list[str]


class TfConfigs(TypedDict):
    """What each job reads as TF_CONFIG, parsed; None for a job that gets none."""

    id: str
    configs: dict[str, dict[str, Any] | None]


class SystemView(TypedDict):
    """The server and its hosts."""

    server: ServerView
    hosts: list[HostView]


class ProblemShape(TypedDict):
    """One problem of a riseml.yml."""

    file: str
    line: int
    column: int
    path: str
    problem: str
    hint: str
    severity: Literal["error", "warning"]


class FailureBody(TypedDict):
    """What went wrong. `kind` is the class of the error tree."""

    kind: str
    message: str
    hint: str | None
    exit_code: int
    problems: NotRequired[list[ProblemShape]]


class Failure(TypedDict):
    """Every answer that is not a success."""

    error: FailureBody
