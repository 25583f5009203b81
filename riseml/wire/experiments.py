"""Experiments, sets and their jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from annotated_types import MaxLen  # a bound that pydantic checks and OpenAPI shows
from typing_extensions import TypedDict

from riseml.base.annotations import MOST_TAGS
from riseml.wire.diagnoses import DiagnosisView
from riseml.wire.metrics import MainMetric, MetricView
from riseml.wire.progress import ProgressView, RateView, RemarkView
from riseml.wire.saves import SavedSummary
from riseml.wire.searches import SearchView
from riseml.wire.state_names import StateName

ExperimentType = Literal["experiment", "set", "tensorboard", "notebook"]
_MOST = 1000  # characters of a name or tag in a request; the server says how many are allowed


class JobView(TypedDict):
    """One job."""

    id: str  # `4.worker.1`; of another user `paul.4.worker.1`
    name: str  # `worker.1`
    state: StateName
    reason: str  # name of a Reason: `EXIT_CODE`
    message: str  # the reason for people
    host: str | None  # where it runs or ran; None: it has no host yet
    attempt: int  # 1, and one more after each retry
    exit_code: int | None  # None: it has not exited
    signal: str | None  # the signal that ended it: `SIGKILL`
    oom: bool  # it ran out of memory
    cpus: float  # guaranteed cores
    mem_mib: int  # guaranteed memory
    gpus: int  # GPUs that it has
    image: str  # before `install`; with `roles`, the image of its role
    shell: str | None  # that read its lines: `bash`, `sh`; None: not known (yet)
    started_at: str | None  # RFC 3339
    ended_at: str | None  # RFC 3339
    progress: NotRequired[ProgressView | None]  # how far it is; null: not known. Older servers do not say
    rates: NotRequired[list[RateView]]  # how fast it is, while it runs. Older servers do not say


class WrittenView(TypedDict):
    """What the jobs wrote outside of OUTPUT_DIR, in their last attempts."""

    kept_files: int  # files that `outputs` of riseml.yml named; they are in OUTPUT_DIR
    kept_bytes: int
    kept_names: list[str]  # the first of them: `model.pt`, `runs/...`
    lost_files: int  # files that went with the jobs
    lost_bytes: int
    lost_names: list[str]  # the first of them
    more: bool  # a job wrote more than was counted
    sentences: list[str]  # all of this for people, with the line of riseml.yml that keeps the lost files


class RunView(TypedDict):
    """The lines that some jobs of an experiment run."""

    jobs: list[str]  # names of the jobs: `worker.1`
    lines: list[str]  # of `run`, with the values of its parameters


class ExperimentView(TypedDict):
    """One experiment or a whole set. A set has members in `experiments` and no jobs of its own."""

    id: str  # `4`; a member of a set: `144.1`; of another user `paul.4`
    user: str  # the owner
    project: str  # `project` of its riseml.yml
    team_project: NotRequired[str | None]  # to which it belongs; null: to none, it is its owner's alone
    may_change: NotRequired[bool]  # the caller may end it and change what is said about it; older servers do not say
    name: str  # that a user has given it; empty: none
    tags: list[str]
    note: str  # Markdown of a user; empty: none
    starred: bool
    archived: bool  # lists leave it out once it has ended
    type: ExperimentType
    shows: list[str]  # the experiments and sets whose outputs a TensorBoard shows; else empty
    state: StateName
    reason: str  # name of a Reason: `EXIT_CODE`
    message: str  # the reason for people
    cause: (
        str | None
    )  # the job whose failure ended it: `worker.1`; of a failed set, one for the usual cause: `3.worker.1`
    last_lines: list[str]  # at most 10 last lines of that job; empty in lists of experiments
    advice: str  # what ended it, or probably did, and what to do next; empty: not known, or in lists of experiments
    created_at: str  # RFC 3339: when the server accepted it
    started_at: str | None  # RFC 3339: when its first job ran; None until all jobs run
    ended_at: str | None  # RFC 3339: when its last job ended
    waited: NotRequired[float]  # seconds between its attempts, in which no job ran; older servers do not say
    waits_since: NotRequired[str | None]  # RFC 3339: when the last attempt ended, while it waits for the next one
    image: str  # the image of the riseml.yml, before `install`; a role may have another one, see its jobs
    # What that image stood for when it was resolved: `python@sha256:...`, or an image ID of the engine. None: not
    # resolved yet, or the jobs run as processes. Every host and every attempt runs it.
    image_digest: str | None
    framework: str  # `tensorflow`; empty without a framework
    run: list[RunView]  # what its jobs run; empty in lists of experiments, for a set, and for what serves a user
    concurrency: int  # how many experiments of its set run at the same time; 1 without a set
    tensorboard: str | None  # URL of its TensorBoard on the server's machine; None: none runs there, and in lists
    parameters: dict[str, str]  # the values of this experiment; empty for a set
    # The folder that its jobs see as OUTPUT_DIR, on the server's machine. For clients elsewhere it is `output://paul.4`,
    # which `riseml cp` takes.
    output: str
    exit_code: int | None  # exit code of the job that decided the end
    closed: bool  # no host has containers or networks of it any more
    jobs: list[JobView]
    experiments: list[ExperimentView]
    metrics: list[MetricView]  # that its jobs have reported; empty in lists of experiments, and for a set
    # In lists of experiments; null for a set, elsewhere, and where nothing was reported. Older servers do not say.
    main_metric: NotRequired[MainMetric | None]
    # Of its job that is furthest behind; null for a set, and where no job tells it. Older servers do not say.
    progress: NotRequired[ProgressView | None]
    # What is probably wrong while it runs; empty in lists of experiments, and for a set. Older servers do not say.
    remarks: NotRequired[list[RemarkView]]
    # Why it made no progress, when that was last looked at; null: never, in lists, and for a set. Older servers do not
    # say.
    diagnosis: NotRequired[DiagnosisView | None]
    search: SearchView | None  # the search that chooses the points of a set
    # What must have ended before it starts: `4`; `4:any`, however 4 ended. Without what the caller does not see
    after: NotRequired[list[str]]  # of a set, that of each of its experiments; older servers do not say
    notes: list[str]  # remarks about its riseml.yml
    saved: SavedSummary | None  # the state of the last copy into its store; None: nothing is saved, and in lists
    written: WrittenView | None  # None: the jobs wrote nothing outside of OUTPUT_DIR, or run; and in lists


class AnnotationView(TypedDict):
    """What users have said about an experiment, or about a set as a whole."""

    id: str  # `4`; a member of a set: `144.1`
    name: str  # empty: none
    tags: list[str]  # in the order in which they were added
    note: str  # Markdown, as it was written; empty: none
    starred: bool
    archived: bool  # lists leave it out once it has ended


class AnnotationList(TypedDict):
    """What users have said about several experiments."""

    experiments: list[AnnotationView]


class AnnotationChange(TypedDict):
    """What a user says about an experiment, or about a set as a whole. What is not named stays."""

    name: NotRequired[Annotated[str, MaxLen(_MOST)]]  # empty: it has no name any more
    add_tags: NotRequired[Annotated[list[Annotated[str, MaxLen(_MOST)]], MaxLen(MOST_TAGS)]]
    remove_tags: NotRequired[Annotated[list[Annotated[str, MaxLen(_MOST)]], MaxLen(MOST_TAGS)]]
    note: NotRequired[Annotated[str, MaxLen(2**20)]]  # empty: it has no note any more
    starred: NotRequired[bool]
    archived: NotRequired[bool]


class FoundName(TypedDict):
    """What a word stands for where an ID is expected."""

    id: str  # `4`, `144.1`, `4.worker.1`


class ExperimentList(TypedDict):
    """Several experiments, with their jobs."""

    experiments: list[ExperimentView]  # oldest first


class NameList(TypedDict):
    """IDs that begin with what a user has typed, for shells that complete it."""

    # IDs of experiments and sets; behind a dot those of the members and jobs: `4.worker.1`; or names and tags of users
    names: list[str]


class JobEnvironment(TypedDict):
    """The variables that riseml sets in one job. The image may set more."""

    variables: dict[str, str]
    hidden: list[str]  # names of variables that are set, too, and whose values are not shown
    image: str  # in which the job finds them; before `install`


class JobEnvironments(TypedDict):
    """The variables of each job."""

    id: str  # ID of the experiment
    jobs: dict[str, JobEnvironment]  # by the name of the job


class TfConfigs(TypedDict):
    """What each job reads as TF_CONFIG."""

    id: str  # ID of the experiment
    configs: dict[str, dict[str, Any] | None]  # name of a job -> its parsed TF_CONFIG; None: the job has none
