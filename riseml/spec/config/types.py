"""What a riseml.yml says, once it is read: frozen, units settled, defaults filled.

`schemas/riseml.schema.json` is the contract of the file; these are its dataclasses. Memory is in MiB, times are in
seconds, cpus are cores.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

DEFAULT_CPUS = 1.0
DEFAULT_MEM = 1024
DEFAULT_TENSORFLOW = "2.21.0"


Labels = tuple[tuple[str, str], ...]
"""Names and values in the order of their names: hashable, and the same however they were written."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a job is guaranteed: a minimum, not a cap (RiseML's rule). `cpus` in cores, `mem` in MiB.

    `labels` are those that its host must have.
    """

    cpus: float = DEFAULT_CPUS
    mem: int = DEFAULT_MEM
    gpus: int = 0
    labels: Labels = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard caps beside the guaranteed minimums; None: none. `cpus` in cores, `mem` in MiB."""

    cpus: float | None = None
    mem: int | None = None


class RetryOn(enum.Enum):
    """What another attempt may follow."""

    HOST_LOST = "host-lost"
    EXIT_CODES = "exit-codes"
    OUT_OF_MEMORY = "out-of-memory"


class RetryScope(enum.Enum):
    """What is started again: the whole gang, or the job that failed."""

    EXPERIMENT = "experiment"
    ROLE = "role"


@dataclass(frozen=True, slots=True)
class Retry:
    """`max` further attempts after the first one."""

    max: int = 0
    on: frozenset[RetryOn] = frozenset({RetryOn.HOST_LOST, RetryOn.EXIT_CODES})
    scope: RetryScope = RetryScope.EXPERIMENT


NO_RETRY = Retry()


class ChiefKey(enum.Enum):
    """The key of the first worker in TF_CONFIG's cluster."""

    CHIEF = "chief"
    MASTER = "master"
    WORKER = "worker"


@dataclass(frozen=True, slots=True)
class Distributed:
    """A TensorFlow cluster. `workers` counts the master too: 3 is master, worker.1 and worker.2."""

    workers: int
    ps: int
    chief: ChiefKey
    master_resources: Resources
    worker_resources: Resources
    ps_resources: Resources
    evaluator_resources: Resources | None = None  # None: no evaluator


@dataclass(frozen=True, slots=True)
class Horovod:
    """`workers` containers with `processes` ranks in each."""

    workers: int
    processes: int


@dataclass(frozen=True, slots=True)
class TensorFlow:
    """The `tensorflow` section; `version` is the tag of the tensorflow/tensorflow image."""

    version: str = DEFAULT_TENSORFLOW
    tensorboard: bool = False
    distributed: Distributed | None = None
    horovod: Horovod | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """One hyperparameter; `values` are texts, exactly as written. One value: a scalar."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EnvVariable:
    """An environment variable; `value` None means: passed through from the caller."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Train:
    """The `train` section."""

    run: tuple[str, ...]
    image: str | None = None
    install: tuple[str, ...] = ()
    resources: Resources = Resources()
    limits: Limits = Limits()
    framework: str | None = None
    tensorflow: TensorFlow | None = None
    parameters: tuple[Parameter, ...] = ()
    concurrency: int = 1
    env: tuple[EnvVariable, ...] = ()
    shm_size: int | None = None  # MiB; None: half of mem, at least 1 GiB
    retry: Retry = NO_RETRY
    max_duration: float | None = None
    stop_grace: float = 10.0
    finish_grace: float | None = None  # None: 10 s for workers, 10 min for the evaluator
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole riseml.yml. `notes` are remarks for the user that are no problems (defaults that were filled)."""

    project: str
    train: Train
    notes: tuple[str, ...] = field(default=(), compare=False)
