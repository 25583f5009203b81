"""The shapes of riseml.yml for programs: `riseml.submit(spec)` takes a `SpecDict`, and a type checker its mistakes.

Made by `python -m scripts.spec_shapes` from schemas/riseml.schema.json. Do not edit it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Required, TypedDict

__all__ = [
    "DataDict",
    "DistributedDict",
    "DistributedEvaluatorDict",
    "DistributedMasterDict",
    "DistributedPsDict",
    "DistributedWorkerDict",
    "EnvDict",
    "GroupMasterDict",
    "GroupWorkerDict",
    "HorovodDict",
    "HorovodWorkersDict",
    "ImageDict",
    "JaxDict",
    "JaxDistributedDict",
    "LimitsDict",
    "LogDict",
    "NotifyDict",
    "OnDict",
    "OnStalledDict",
    "ParameterDict",
    "ParameterIntDict",
    "ParameterLogDict",
    "ParameterNormalDict",
    "ParameterRangeDict",
    "ParameterUniformDict",
    "PytorchDict",
    "PytorchDistributedDict",
    "ResourcesDict",
    "RetryDict",
    "RoleDict",
    "SaveDict",
    "SearchDict",
    "SearchPbtDict",
    "SearchStopDict",
    "SecretsDict",
    "SpecDict",
    "StallDict",
    "TensorflowDict",
    "TensorflowTensorboardDict",
    "TrainDict",
]


class ImageDict(TypedDict, total=False):
    """Docker image."""

    name: Required[str]  # Reference of the image
    install: str | Sequence[str]


class ResourcesDict(TypedDict, total=False):
    """Resources of the role."""

    cpus: float | str  # CPU cores
    mem: str | float  # Memory
    gpus: int | str  # GPUs
    gpu: str  # Model of the GPUs
    gpu_mem: str | float  # Memory of each GPU
    labels: Mapping[str, str | float]  # Labels of the host


class LimitsDict(TypedDict, total=False):
    """Hard limits."""

    cpus: float | str  # Most CPU cores
    mem: str | float  # Most memory


class TensorflowTensorboardDict(TypedDict, total=False):
    """TensorBoard."""

    logdir: str  # Where the logs are
    version: str | float  # Version of TensorBoard


class DistributedWorkerDict(TypedDict, total=False):
    """Workers."""

    count: int | str  # How many
    resources: ResourcesDict


class DistributedPsDict(TypedDict, total=False):
    """Parameter servers."""

    count: int | str  # How many
    resources: ResourcesDict


class DistributedMasterDict(TypedDict, total=False):
    """Master."""

    resources: Required[ResourcesDict]


class DistributedEvaluatorDict(TypedDict, total=False):
    """Evaluator."""

    resources: Required[ResourcesDict]


class DistributedDict(TypedDict, total=False):
    """TensorFlow cluster."""

    worker: int | DistributedWorkerDict | str  # Workers
    ps: int | DistributedPsDict | str  # Parameter servers
    master: DistributedMasterDict  # Master
    evaluator: bool | DistributedEvaluatorDict  # Evaluator
    chief: Literal["chief", "master", "worker"]  # Key of the first worker


class HorovodWorkersDict(TypedDict, total=False):
    """Workers."""

    count: Required[int | str]
    processes: int | str


class HorovodDict(TypedDict, total=False):
    """Horovod."""

    workers: int | HorovodWorkersDict | str  # Workers
    count: int | str
    processes: int | str


class TensorflowDict(TypedDict, total=False):
    """TensorFlow."""

    version: str | float  # Version of TensorFlow
    tensorboard: bool | TensorflowTensorboardDict | str  # TensorBoard
    distributed: bool | DistributedDict
    horovod: HorovodDict


class GroupWorkerDict(TypedDict, total=False):
    """Containers."""

    count: int | str  # How many
    resources: ResourcesDict


class GroupMasterDict(TypedDict, total=False):
    """Master."""

    resources: Required[ResourcesDict]


class PytorchDistributedDict(TypedDict, total=False):
    """PyTorch process group."""

    worker: int | GroupWorkerDict | str
    processes: int | str  # Processes of torchrun
    master: GroupMasterDict


class PytorchDict(TypedDict, total=False):
    """PyTorch."""

    version: str | float  # Version of PyTorch
    distributed: bool | PytorchDistributedDict
    horovod: HorovodDict


class JaxDistributedDict(TypedDict, total=False):
    """JAX process group."""

    worker: int | GroupWorkerDict | str
    processes: int | str  # Processes
    master: GroupMasterDict


class JaxDict(TypedDict, total=False):
    """JAX."""

    version: str | float  # Version of JAX
    distributed: bool | JaxDistributedDict


class RoleDict(TypedDict, total=False):
    """Role."""

    run: str | Sequence[str]  # Command lines of the role
    count: int | str  # How many jobs
    shell: Literal["auto", "bash", "sh"]
    image: str | ImageDict
    install: str | Sequence[str]
    outputs: str | Sequence[str]
    resources: ResourcesDict
    ends: Literal["decides", "helps", "serves"]  # What their end means
    after: Sequence[str] | Mapping[str, int]  # Starts after


class ParameterRangeDict(TypedDict, total=False):
    """Range of numbers."""

    min: Required[float]  # First value
    max: Required[float]  # Last value
    step: Required[float]  # Step


class ParameterUniformDict(TypedDict, total=False):
    """Any number between two."""

    min: Required[float | str]  # Smallest number
    max: Required[float | str]  # Largest number
    step: float  # Step


class ParameterLogDict(TypedDict, total=False):
    """Any number, by its magnitude."""

    min: Required[float | str]  # Smallest number
    max: Required[float | str]  # Largest number


class ParameterIntDict(TypedDict, total=False):
    """A whole number between two."""

    min: Required[int | str]  # Smallest number
    max: Required[int | str]  # Largest number
    step: int  # Step
    log: bool  # By magnitude


class ParameterNormalDict(TypedDict, total=False):
    """Any number, near a mean."""

    mean: Required[float]  # Mean
    sd: Required[float]  # Standard deviation


class ParameterDict(TypedDict, total=False):
    """Parameter."""

    values: Sequence[str | float | bool] | str | float | bool  # Values
    range: ParameterRangeDict  # Range of numbers
    uniform: ParameterUniformDict  # Any number between two
    log: ParameterLogDict  # Any number, by its magnitude
    int: ParameterIntDict  # A whole number between two
    normal: ParameterNormalDict  # Any number, near a mean
    when: Mapping[str, str | float | bool | Sequence[str | float | bool]]  # Condition
    default: str | float | bool  # Default


class SearchStopDict(TypedDict, total=False):
    """Early stopping."""

    method: Required[Literal["asha", "hyperband", "median"]]  # Which trials are stopped
    after: int  # First step
    factor: int  # One of how many goes on
    most: int  # Last step


class SearchPbtDict(TypedDict, total=False):
    """Population."""

    population: int  # Trials of a generation
    replace: float  # Share that is replaced
    resample: float  # Probability of any value
    inherit: Sequence[str]  # Files of the parent


class SearchDict(TypedDict, total=False):
    """Search for the best point."""

    method: Required[Literal["grid", "random", "tpe", "cma-es", "pbt"]]  # How points are chosen
    trials: int  # Number of trials
    metric: str  # What makes a point good
    goal: Literal["maximize", "minimize"]  # Which value is better
    metrics: Mapping[str, Literal["maximize", "minimize"]]  # Several objectives
    objective: str  # Which value of a run counts
    seed: int  # Seed
    stop: SearchStopDict  # Early stopping
    points: Sequence[Mapping[str, str | float | bool]]  # Points that are tried first
    constraints: Sequence[str]  # Constraints
    pbt: SearchPbtDict  # Population
    max_failed: int  # Most failed trials


DataDict = TypedDict("DataDict", {"from": str, "to": str})
"""One entry."""


class SaveDict(TypedDict, total=False):
    """Saved output."""

    to: Required[str]  # Address
    every: str | float  # Interval
    only: Sequence[str]  # Files
    restore: bool  # Begin with what was saved


class EnvDict(TypedDict, total=False):
    """Value."""

    secret: Required[str]


class SecretsDict(TypedDict, total=False):
    """Secret file."""

    name: Required[str]
    file: str  # File


class RetryDict(TypedDict, total=False):
    """Further attempts."""

    max: Required[int]  # Most further attempts
    on: Sequence[Literal["host-lost", "exit-codes", "out-of-memory", "idle"]]  # After what
    scope: Literal["experiment", "role"]  # What starts again


class StallDict(TypedDict, total=False):
    """No progress any more."""

    after: str | float  # How long
    then: Literal["remark", "dump", "retry", "fail"]  # What follows


class LogDict(TypedDict, total=False):
    """Log."""

    bars: Literal["last", "all"]  # States of progress bars


class OnStalledDict(TypedDict, total=False):
    """A metric that does not improve any more."""

    metric: Required[str]  # Metric
    goal: Required[Literal["maximize", "minimize"]]  # Goal
    patience: Required[int]  # Patience


class OnDict(TypedDict, total=False):
    """What follows from metrics."""

    nan: Literal["remark", "stop", "fail"]  # A loss that is not a number
    metrics: Sequence[str]  # Metrics that count
    stalled: OnStalledDict  # A metric that does not improve any more


class NotifyDict(TypedDict, total=False):
    """Notifications."""

    on: Required[Sequence[str]]  # Events
    to: Sequence[str]  # Webhooks


class TrainDict(TypedDict, total=False):
    """What to train."""

    framework: Literal["tensorflow", "pytorch", "jax"]  # Framework
    image: str | ImageDict
    install: str | Sequence[str]
    run: str | Sequence[str]  # Command lines
    shell: Literal["auto", "bash", "sh"]
    resources: ResourcesDict  # Guaranteed resources
    limits: LimitsDict  # Hard limits
    shm_size: str | float  # Shared memory
    tensorflow: TensorflowDict  # TensorFlow
    pytorch: PytorchDict  # PyTorch
    jax: JaxDict  # JAX
    roles: Mapping[str, RoleDict | None]  # Roles of your own
    parameters: Mapping[str, str | float | bool | Sequence[str | float | bool] | ParameterDict]  # Hyperparameters
    variables: Mapping[str, str | bool]  # Variables of parameters
    search: SearchDict
    concurrency: int  # Experiments at the same time
    repeat: int  # Runs of each point
    metrics: Mapping[str, str]  # Metrics read from the log
    track: bool | Sequence[Literal["tensorboard", "mlflow", "wandb", "kubeflow"]]  # Metrics read elsewhere
    data: Sequence[DataDict]  # Data
    inputs: Mapping[str, str]  # Inputs
    store: str  # Access to a store
    name: str  # Name of the run
    tags: str | Sequence[str]  # Tags of the run
    notes: str  # Note on the run
    outputs: str | Sequence[str]
    save: SaveDict  # Saved output
    env: Mapping[str, str | float | bool | EnvDict] | Sequence[str | Mapping[str, EnvDict]]  # Environment variables
    secrets: Sequence[SecretsDict]  # Secrets as files
    retry: int | RetryDict  # Further attempts
    max_duration: str | float  # Longest run
    idle_timeout: str | float  # Longest time without a sign of life
    stall: StallDict  # No progress any more
    stop_grace: str | float  # Time to stop
    finish_grace: str | float  # Time to finish
    priority: int  # Priority
    log: LogDict  # Log
    on: OnDict  # What follows from metrics
    notify: NotifyDict  # Notifications


class SpecDict(TypedDict, total=False):
    """riseml.yml."""

    project: Required[str]  # Name of the project
    train: Required[TrainDict]
