"""The content of a riseml.yml: frozen dataclasses with units converted and defaults filled in.

`schemas/riseml.schema.json` is the contract of the file; tests/unit/spec/test_drift.py compares these classes with it.
"""

from __future__ import annotations

import enum
from dataclasses import field

from riseml.base.records import dataclass
from riseml.base.states import State

DEFAULT_CPUS = 1.0  # cores
DEFAULT_MEM = 1024  # MiB
DEFAULT_TENSORFLOW = "2.21.0"
DEFAULT_PYTORCH = "2.6.0-cuda12.4-cudnn9-runtime"
DEFAULT_JAX = "0.10.2"
SEED = "seed"
"""The parameter that `repeat` makes: 1 for the first run of a point, 2 for the second one, ..."""

DEFAULT_AFTER = 1  # `search.stop.after`, steps
DEFAULT_FACTOR = 3  # `search.stop.factor`


Labels = tuple[tuple[str, str], ...]
"""Names and values, sorted by name: hashable, and equal however the file orders them."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a job is guaranteed: a minimum, not a limit (RiseML's rule)."""

    cpus: float = DEFAULT_CPUS  # cores
    mem: int = DEFAULT_MEM  # MiB
    gpus: int = 0  # whole GPUs
    labels: Labels = ()  # labels that the host must have
    gpu: str = ""  # model that each of the GPUs must be; empty: any
    gpu_mem: int | None = None  # MiB that each of the GPUs must have; None: any


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard limits beside the guaranteed minimums."""

    cpus: float | None = None  # cores; None: no limit
    mem: int | None = None  # MiB; None: no limit


class RetryOn(enum.StrEnum):
    """The failures that another attempt may follow."""

    HOST_LOST = "host-lost"
    EXIT_CODES = "exit-codes"
    OUT_OF_MEMORY = "out-of-memory"
    IDLE = "idle"


class RetryScope(enum.Enum):
    """What a retry starts again: all jobs of the experiment, or the job that failed."""

    EXPERIMENT = "experiment"
    ROLE = "role"


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and after which failures jobs start again."""

    max: int = 0  # attempts after the first one
    on: frozenset[RetryOn] = frozenset({RetryOn.HOST_LOST, RetryOn.EXIT_CODES})
    scope: RetryScope = RetryScope.EXPERIMENT


NO_RETRY = Retry()


class KeptBars(enum.Enum):
    """Which states of progress bars the log keeps."""

    LAST = "last"  # the last one of each bar
    ALL = "all"


@dataclass(frozen=True, slots=True)
class LogSection:
    """The `log` section."""

    bars: KeptBars = KeptBars.LAST


DEFAULT_LOG = LogSection()


class ChiefKey(enum.Enum):
    """The key of the first worker in the cluster of TF_CONFIG."""

    CHIEF = "chief"
    MASTER = "master"
    WORKER = "worker"


@dataclass(frozen=True, slots=True)
class Distributed:
    """A TensorFlow cluster."""

    workers: int  # jobs that train, the master included: 3 is master, worker.1 and worker.2
    ps: int  # parameter servers
    chief: ChiefKey
    master_resources: Resources
    worker_resources: Resources
    ps_resources: Resources
    evaluator_resources: Resources | None = None  # None: no evaluator


@dataclass(frozen=True, slots=True)
class Horovod:
    """A Horovod ring."""

    workers: int  # containers
    processes: int  # Horovod processes in each container


@dataclass(frozen=True, slots=True)
class TensorBoard:
    """A TensorBoard as a job of the experiment."""

    logdir: str = ""  # below OUTPUT_DIR; an absolute path or a URL: elsewhere; empty: OUTPUT_DIR itself
    version: str | None = None  # version of the package `tensorboard`; None: what the image has


@dataclass(frozen=True, slots=True)
class TensorFlow:
    """The `tensorflow` section."""

    version: str = DEFAULT_TENSORFLOW  # tag of the image tensorflow/tensorflow, as written
    tensorboard: TensorBoard | None = None  # None: no TensorBoard
    distributed: Distributed | None = None  # None: one job
    horovod: Horovod | None = None  # None: no Horovod


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Containers whose processes train together: for PyTorch, each is a node of `torchrun`."""

    workers: int  # containers, the master included: 3 is master, worker.1 and worker.2
    processes: int | None  # processes in each container; None: PyTorch has one for each GPU of the role, JAX has one
    master_resources: Resources
    worker_resources: Resources


@dataclass(frozen=True, slots=True)
class PyTorch:
    """The `pytorch` section."""

    version: str = DEFAULT_PYTORCH  # tag of the image pytorch/pytorch, as written
    distributed: ProcessGroup | None = None  # None: one job
    horovod: Horovod | None = None  # None: no Horovod


@dataclass(frozen=True, slots=True)
class JAX:
    """The `jax` section."""

    version: str = DEFAULT_JAX  # version of the package jax, as written
    distributed: ProcessGroup | None = None  # None: one job


class Shell(enum.StrEnum):
    """The shell that reads the lines of `run` and the steps of `install`."""

    AUTO = "auto"  # bash where the image or the machine has it, else sh
    BASH = "bash"
    SH = "sh"


class Tracker(enum.StrEnum):
    """What else a training writes metrics for."""

    TENSORBOARD = "tensorboard"  # its event files
    MLFLOW = "mlflow"  # its runs, in a folder below OUTPUT_DIR
    WANDB = "wandb"  # its runs without a connection, below OUTPUT_DIR
    KUBEFLOW = "kubeflow"  # what a training reports to Kubeflow's trainer, such as one with transformers


FILE_TRACKERS = frozenset({Tracker.TENSORBOARD, Tracker.MLFLOW, Tracker.WANDB})
"""Those whose files a program beside each job reads."""


class RoleEnd(enum.Enum):
    """What the end of a role's jobs means for the experiment."""

    DECIDES = "decides"
    HELPS = "helps"
    SERVES = "serves"


@dataclass(frozen=True, slots=True)
class RoleSection:
    """One role of the user's own."""

    name: str
    run: tuple[str, ...]  # command lines, with placeholders
    count: int | None = None  # jobs `actor.1`, `actor.2`, ...; None: one job, named as the role
    resources: Resources = Resources()  # resources of each job
    ends: RoleEnd = RoleEnd.HELPS
    after: tuple[tuple[str, int | None], ...] = ()  # roles that must answer first, and the port; None: their own
    image: str | None = None  # None: `train.image`
    install: tuple[str, ...] = ()  # steps on top of its image; without an image of its own, those of `train` by default
    shell: Shell = Shell.AUTO  # by default that of `train`
    outputs: tuple[str, ...] = ()  # as in `train`; empty: those of `train`


class Scale(enum.Enum):
    """How the numbers of a distribution are spread; the value is the key in riseml.yml."""

    UNIFORM = "uniform"
    LOG = "log"
    INT = "int"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True)
class Distribution:
    """Numbers from which a search takes the values of a parameter."""

    scale: Scale
    low: float  # the smallest; where `low_formula` computes it, no number
    high: float  # the largest; where `high_formula` computes it, no number
    step: float | None = None  # None: every number between them, or every whole one
    by_magnitude: bool = False  # all magnitudes of whole numbers are equally likely
    low_formula: str = ""  # computes the smallest number from other parameters; empty: it is `low`
    high_formula: str = ""  # computes the largest number from other parameters; empty: it is `high`
    mean: float = 0.0  # of a normal distribution
    sd: float = 0.0  # standard deviation of a normal distribution


@dataclass(frozen=True, slots=True)
class Parameter:
    """One hyperparameter."""

    name: str
    values: tuple[str, ...]  # as written; several make an experiment set; empty: `distribution` says which
    distribution: Distribution | None = None  # None: `values` are all
    # other parameters, and the values with which this one is there; empty: it is always there
    when: tuple[tuple[str, tuple[str, ...]], ...] = ()
    default: str | None = None  # what placeholders become where the parameter is not there; None: none may use it


class SearchMethod(enum.Enum):
    """How a search chooses the points that it tries."""

    GRID = "grid"
    RANDOM = "random"
    TPE = "tpe"
    CMA_ES = "cma-es"
    PBT = "pbt"


class Goal(enum.Enum):
    """Which value of a metric is better."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


class ValueKind(enum.Enum):
    """Which of the values that a run reports of a metric counts."""

    BEST = "best"
    LAST = "last"
    MEAN = "mean"
    AT = "at"


@dataclass(frozen=True, slots=True)
class ValueRule:
    """A kind of value with its number: `best`, `last`, `mean(5)`, `at(1000)`."""

    kind: ValueKind = ValueKind.BEST
    number: int = 0  # of `mean`: how many values; of `at`: the step

    def __str__(self) -> str:
        """Return the rule as riseml.yml has it."""
        has_number = self.kind in (ValueKind.MEAN, ValueKind.AT)
        return f"{self.kind.value}({self.number})" if has_number else self.kind.value


BEST_VALUE = ValueRule()
LAST_VALUE = ValueRule(ValueKind.LAST)


class StopMethod(enum.Enum):
    """Which trials are stopped early."""

    ASHA = "asha"
    HYPERBAND = "hyperband"
    MEDIAN = "median"


@dataclass(frozen=True, slots=True)
class StopRule:
    """Early stopping: when a trial that does worse than others ends."""

    method: StopMethod
    after: int = DEFAULT_AFTER  # the first step at which a trial may be stopped
    factor: int = DEFAULT_FACTOR  # one of this many trials goes on, for this many times the steps
    most: int | None = None  # steps of a whole trial; only `hyperband` has it


@dataclass(frozen=True, slots=True)
class PopulationRule:
    """Population based training: how one generation of trials follows from the one before."""

    population: int = 8  # trials of a generation
    replace: float = 0.25  # share of a generation that continues the best ones instead of itself
    resample: float = 0.25  # probability that a changed parameter gets any of its values instead of a near one
    inherit: tuple[str, ...] = ()  # patterns of the files that a trial gets from its parent; empty: all


@dataclass(frozen=True, slots=True)
class SearchSection:
    """The `search` section: how the best point of the parameters is found."""

    method: SearchMethod
    metric: str  # name of the metric that jobs report; with several objectives, the first one
    goal: Goal
    trials: int  # points that are tried
    seed: int | None = None  # None: riseml chooses one
    stop: StopRule | None = None  # None: every trial runs to its end
    max_failed: int | None = None  # failed trials after which no further one is made; None: no limit
    objective: ValueRule = BEST_VALUE  # which value of the metric counts
    points: tuple[tuple[tuple[str, str], ...], ...] = ()  # what the first trials try; what they lack is chosen
    constraints: tuple[str, ...] = ()  # comparisons of parameters that every point meets
    metrics: tuple[tuple[str, Goal], ...] = ()  # several objectives, `metric` and `goal` first; empty: that one alone
    pbt: PopulationRule | None = None  # None: another method

    @property
    def objectives(self) -> tuple[tuple[str, Goal], ...]:
        """All metrics that decide, with their goals."""
        return self.metrics or ((self.metric, self.goal),)


class Relation(enum.Enum):
    """How a metric is compared with a value."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="


@dataclass(frozen=True, slots=True)
class MetricCondition:
    """The value that a metric must reach."""

    metric: str
    relation: Relation
    value: float

    def __str__(self) -> str:
        """Return the condition as one text, by which it is known: two conditions never have the same."""
        short = f"{self.value:g}"
        return f"{self.metric} {self.relation.value} {short if float(short) == self.value else repr(self.value)}"

    def holds(self, value: float) -> bool:
        """Return True when a value meets the condition."""
        match self.relation:
            case Relation.ABOVE:
                return value > self.value
            case Relation.AT_LEAST:
                return value >= self.value
            case Relation.BELOW:
                return value < self.value
            case Relation.AT_MOST:
                return value <= self.value


class NanRule(enum.Enum):
    """What follows when a loss is not a finite number any more."""

    REMARK = "remark"  # the experiment goes on
    STOP = "stop"  # it ends as FINISHED
    FAIL = "fail"  # it ends as FAILED, without another attempt


@dataclass(frozen=True, slots=True)
class StalledRule:
    """When a metric counts as one that does not improve any more."""

    metric: str
    goal: Goal
    patience: int  # steps without a better value


@dataclass(frozen=True, slots=True)
class OnSection:
    """The `on` section: what follows from metrics while the jobs run."""

    nan: NanRule = NanRule.REMARK
    metrics: tuple[str, ...] = ()  # names of the metrics that count for `nan`; empty: every loss
    stalled: StalledRule | None = None  # None: nobody has said which metric should improve


DEFAULT_ON = OnSection()


class StallRule(enum.Enum):
    """What follows when an experiment makes no progress any more."""

    REMARK = "remark"  # it goes on
    DUMP = "dump"  # it goes on, and the server says why it is stuck
    RETRY = "retry"  # this attempt fails, and another one follows as far as `retry` allows
    FAIL = "fail"  # it ends as FAILED, without another attempt


@dataclass(frozen=True, slots=True)
class StallSection:
    """The `stall` section: how long an experiment may be silent, and what follows then."""

    after: float | None = None  # seconds without a sign of progress; None: its own rhythm says how long
    then: StallRule = StallRule.DUMP


DEFAULT_STALL = StallSection()


@dataclass(frozen=True, slots=True)
class NotifySection:
    """The `notify` section: what webhooks get in addition to the events that the user's notify.yml chooses."""

    ends: tuple[State, ...] = ()  # states in which the experiment, or its whole set, ends
    reached: tuple[MetricCondition, ...] = ()
    to: tuple[str, ...] = ()  # names of webhooks; empty: all
    remarks: bool = False  # what is probably wrong while it runs


@dataclass(frozen=True, slots=True)
class EnvVariable:
    """One environment variable of `env`."""

    name: str
    value: str | None  # None: the caller's own value, or that of a secret
    secret: str = ""  # name of the secret whose value it has; empty: it has another value

    @property
    def is_passed(self) -> bool:
        """True for a variable with the caller's own value."""
        return self.value is None and not self.secret


@dataclass(frozen=True, slots=True)
class SecretFile:
    """One entry of `secrets`: a secret that jobs read as a file."""

    name: str  # of the secret
    file: str  # name below `$RISEML_SECRETS`


@dataclass(frozen=True, slots=True)
class DataSource:
    """One entry of `data`: what jobs read as `{{data_dir}}/<folder>`."""

    url: str  # as written, and checked: `s3://bucket/mnist`, `https://host/file`, `data://folder`
    folder: str  # its name below the data folder of the jobs


@dataclass(frozen=True, slots=True)
class InputSource:
    """One entry of `inputs`: a part of the output of another experiment, or of a set."""

    name: str  # as in the variable of the jobs: `model` is RISEML_INPUT_MODEL
    url: str  # as written, and checked: `output://4/model`


DEFAULT_EVERY = 300.0
"""Seconds between two copies of an output."""


@dataclass(frozen=True, slots=True)
class SaveSection:
    """`save`: where the output is copied while the jobs run, and when they have ended."""

    to: str  # as written, and checked: `s3://bucket/runs`
    every: float = DEFAULT_EVERY  # seconds
    only: tuple[str, ...] = ()  # patterns of paths; empty: every file
    restore: bool = False  # another attempt begins with what was saved


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """The keys of `train` that a plan has as they are written, whatever the framework and the point of the grid."""

    shm_size: int | None = None  # MiB of /dev/shm; None: half of the job's memory, at least 1 GiB
    stop_grace: float = 10.0  # seconds between SIGTERM and SIGKILL; a trial that is stopped early has less
    max_duration: float | None = None  # seconds after the start; None: no limit
    idle_timeout: float | None = None  # seconds without output and processor time in all jobs; None: no limit
    retry: Retry = NO_RETRY
    priority: int = 0  # a higher one starts first
    metrics: tuple[tuple[str, str], ...] = ()  # names, and the patterns that find their values in lines of output
    data: tuple[DataSource, ...] = ()  # what is fetched before the jobs start; empty: they see the whole data folder
    inputs: tuple[InputSource, ...] = ()  # outputs of other experiments that the jobs read
    store: str = ""  # the store of stores.yml whose keys jobs get; empty: none
    notify: NotifySection | None = None  # None: webhooks get only what the user's notify.yml chooses
    save: SaveSection | None = None  # where the output is copied; None: nowhere
    variables: tuple[tuple[str, str], ...] = ()  # parameters with another variable than the usual one; empty: none
    outputs: tuple[str, ...] = ()  # patterns of files that are moved into OUTPUT_DIR when a job ends
    secrets: tuple[SecretFile, ...] = ()  # secrets that jobs read as files
    track: tuple[Tracker, ...] = (Tracker.TENSORBOARD,)  # where metrics are read, too; empty: `track: false`
    log: LogSection = DEFAULT_LOG
    on: OnSection = DEFAULT_ON
    stall: StallSection = DEFAULT_STALL


DEFAULT_POLICY = RunPolicy()


@dataclass(frozen=True, slots=True)
class Train:
    """The `train` section; the fields of its policy are keys of the section, too."""

    run: tuple[str, ...]  # command lines, with placeholders; empty when each role has its own
    shell: Shell = Shell.AUTO  # shell of `run` and `install`
    image: str | None = None  # None: the image of the framework
    install: tuple[str, ...] = ()  # shell steps that are built into the image
    resources: Resources = Resources()  # resources of each job; roles of a cluster may have their own
    limits: Limits = Limits()  # limits of each job
    framework: str | None = None  # None: one job that runs `run`
    tensorflow: TensorFlow | None = None  # None: no such section
    pytorch: PyTorch | None = None  # None: no such section
    jax: JAX | None = None  # None: no such section
    roles: tuple[RoleSection, ...] = ()  # the user's own kinds of jobs, in the order of the file
    parameters: tuple[Parameter, ...] = ()
    search: SearchSection | None = None  # None: every combination of the parameters' values
    repeat: int | None = None  # runs of each point, which differ in the parameter `seed`; None: one, without it
    concurrency: int = 1  # experiments of a set that run at the same time
    env: tuple[EnvVariable, ...] = ()
    name: str = ""  # of each run; empty: none
    tags: tuple[str, ...] = ()  # of each run
    notes: str = ""  # on each run, in Markdown
    finish_grace: float | None = None  # seconds; None: 10 s for workers, 10 min for the evaluator
    policy: RunPolicy = DEFAULT_POLICY

    @property
    def seeds(self) -> tuple[str, ...]:
        """The values of the parameter `seed` with which each point runs; empty without `repeat`."""
        return tuple(str(seed) for seed in range(1, (self.repeat or 0) + 1))


@dataclass(frozen=True, slots=True)
class Topology:
    """The `train` section with one value for each parameter that counts and resources use."""

    values: tuple[tuple[str, str], ...]  # names of these parameters and their values
    train: Train


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole riseml.yml."""

    project: str
    train: Train  # with several topologies: the first one
    topologies: tuple[Topology, ...] = ()  # by the values of the parameters that counts and resources use; empty: none
    notes: tuple[str, ...] = field(default=(), compare=False)  # remarks for the user, such as defaults that apply
