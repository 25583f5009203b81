"""What jobs use, and what they have used: CPU, memory, GPUs."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from riseml.wire.progress import ProgressView, RateView
from riseml.wire.state_names import StateName


class SampleView(TypedDict):
    """What one job uses. None: unknown, for example because the job does not run."""

    id: str  # `4.worker.1`
    project: str
    state: StateName
    host: str | None  # None: it has no host yet
    node: str | None  # the machine that a cluster has chosen; None: the host is not a cluster, or has not started it
    time: str | None  # RFC 3339: when it was measured
    cpu: float | None  # per cent of one core: two busy cores are 200
    mem: float | None  # per cent of `mem_total`
    mem_used: int | None  # bytes
    mem_total: int | None  # bytes that the job may use
    gpu: float | None  # per cent of its GPUs
    gpu_mem: float | None  # per cent of `gpu_mem_total`
    gpu_mem_used: int | None  # bytes
    gpu_mem_total: int | None  # bytes
    net_in: float | None  # bytes per second
    net_out: float | None  # bytes per second
    disk_read: float | None  # bytes per second
    disk_write: float | None  # bytes per second
    lines: int | None  # that it printed since the server started to follow its log; compare two samples for a rate
    cpus: float  # guaranteed cores
    mem_mib: int  # guaranteed memory
    gpus: int  # GPUs that it has or waits for
    image: str  # before `install`
    progress: NotRequired[ProgressView | None]  # how far it is; null: not known. Older servers do not say
    rates: NotRequired[list[RateView]]  # how fast it is. Older servers do not say


class Samples(TypedDict):
    """What the jobs use."""

    samples: list[SampleView]  # one for each job, in the order of the experiments and their jobs


class JobSamples(TypedDict):
    """What one job has used: lists of the same length, one place for each moment that is known.

    A value is the mean of `step` seconds. None: unknown.
    """

    id: str  # `4.worker.1`
    project: str
    state: StateName
    host: str | None
    cpus: float  # guaranteed cores
    mem_mib: int  # guaranteed memory
    gpus: int
    time: list[int]  # seconds since 1970: the beginning of what the values are the mean of
    attempt: list[int]
    cpu: list[float | None]  # per cent of one core
    mem_used: list[float | None]  # bytes
    mem_total: list[float | None]  # bytes
    gpu: list[float | None]  # per cent of its GPUs
    gpu_mem_used: list[float | None]  # bytes
    gpu_mem_total: list[float | None]  # bytes
    net_in: list[float | None]  # bytes per second
    net_out: list[float | None]
    disk_read: list[float | None]
    disk_write: list[float | None]


class SampleHistory(TypedDict):
    """What jobs have used in a span of time."""

    since: str  # RFC 3339
    until: str
    step: int  # seconds that one value is the mean of; the server keeps 1 s for an hour, 10 s for a day, 60 s for good
    jobs: list[JobSamples]  # in the order of the experiments and their jobs, without those that have no samples


class StragglerView(TypedDict):
    """What was measured of a job that holds the others of its experiment up."""

    job: str  # ID: `4.worker.1`
    text: str
    kind: Literal["behind", "full-link"]  # it does less than the others; or its network carries no more


class Stragglers(TypedDict):
    """The jobs that slow others down, as in `riseml monitor`; empty until a client has requested it for 15 seconds."""

    stragglers: list[StragglerView]
