"""The frozen records that the whole house shares: plans, what we wrote down, what we saw. No behaviour, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from riseml.names import HostName, JobName
from riseml.spec.config.types import NO_RETRY, Limits, Resources, Retry
from riseml.spec.pool.types import Volume
from riseml.states import Network, Part, Reason, State, Wanted

Environment = tuple[tuple[str, str], ...]
"""Variables in order. A tuple, so that a record stays hashable and its JSON stays stable."""


@dataclass(frozen=True, slots=True)
class Image:
    """The environment of an experiment: `base` plus the `install` steps.

    `digest` is the SHA-256 (hex) of the base reference, the steps and the content of `files`, the project files that
    the steps may read; it is empty when nothing is installed.
    """

    base: str
    install: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    digest: str = ""

    @property
    def reference(self) -> str:
        """What the engine calls it."""
        return f"riseml/environment:{self.digest[:20]}" if self.install else self.base


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """One job before it has a place. `run` lines still hold the placeholders that need addresses."""

    name: JobName
    part: Part
    resources: Resources
    limits: Limits
    run: tuple[str, ...]
    environment: Environment = ()
    grace: float = 0.0  # seconds that it may go on after a good verdict


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run: the environment and every job.

    `framework` names the plug-in that binds addresses, `options` is what that plug-in has to remember for it.
    """

    project: str
    image: Image
    jobs: tuple[PlannedJob, ...]
    framework: str
    parameters: Environment = ()  # this point of the grid
    options: Environment = ()
    shm_size: int | None = None  # MiB
    stop_grace: float = 10.0
    max_duration: float | None = None
    retry: Retry = NO_RETRY
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose files the jobs write: a POSIX user and group."""

    user: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an experiment ends, kept from the moment it is known; the first cause, apart from its cascade.

    `job` is the job that decided, None when it was a person or riseml itself. `again` means that another attempt
    follows once everything of this one has ended.
    """

    state: State
    reason: Reason
    at: datetime
    job: JobName | None = None
    message: str = ""
    again: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """What we last wrote down about one job.

    `ending` is why it is being ended (None: it is not), `ending_at` since when. `address` is its IP address or name for
    the other jobs, `port` the one port that its framework may listen on. `unseen_since`: its host is not among those
    that were seen at all (it left the pool, or has not answered since the server began), so nobody else knows since
    when.
    """

    name: JobName
    part: Part
    resources: Resources
    state: State = State.CREATED
    reason: Reason = Reason.SUBMITTED
    message: str = ""
    attempt: int = 1
    host: HostName | None = None
    address: str | None = None
    port: int | None = None
    gpus: tuple[str, ...] = ()
    exit_code: int | None = None
    oom: bool = False
    started_at: datetime | None = None
    ended_at: datetime | None = None
    ending: Reason | None = None
    ending_at: datetime | None = None
    unseen_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """What we last wrote down about one experiment. `id` is the store's key, `version` the revision that was read.

    `closed`: ended, and nothing of it is left on any host. `set_id`: the set it belongs to, None for a single one.
    `network` is set at placement; `network_host` is the host whose engine creates a network across several hosts.
    """

    id: int
    owner: Owner
    number: int
    project: str
    plan: Plan
    jobs: tuple[Job, ...]
    created_at: datetime
    sub: int | None = None
    set_id: int | None = None
    concurrency: int = 1
    snapshot: str = ""  # digest of the code
    environment: Environment = ()  # from the caller; never shown
    wanted: Wanted = Wanted.RUN
    state: State = State.CREATED
    reason: Reason = Reason.SUBMITTED
    message: str = ""
    verdict: Verdict | None = None
    network: Network = Network.BRIDGE
    network_host: HostName | None = None
    subnet: str | None = None
    placed_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    closed: bool = False
    version: int = 0

    @property
    def gang(self) -> tuple[Job, ...]:
        """The jobs that get their places together: all but the one that makes the environment."""
        return tuple(job for job in self.jobs if job.part is not Part.PREPARES)

    @property
    def build(self) -> Job | None:
        """The job that makes the environment."""
        return next((job for job in self.jobs if job.part is Part.PREPARES), None)

    def key_of(self, job: Job) -> JobKey:
        """The identity of a job's container in its current attempt."""
        return JobKey(self.id, job.name, job.attempt)


@dataclass(frozen=True, slots=True)
class World:
    """Every experiment that is not closed, oldest first."""

    experiments: tuple[Experiment, ...]


@dataclass(frozen=True, slots=True, order=True)
class JobKey:
    """The identity of one container or process group: what its labels say."""

    experiment: int
    job: JobName
    attempt: int


@dataclass(frozen=True, slots=True)
class ContainerSeen:
    """One container (or process group) as its host reported it.

    `started` False with an `error` means that its start failed, True with one that its host went down under it;
    `exit_code` is None while it runs or was never started.
    `drained`: it has ended and we hold its whole log.
    """

    key: JobKey
    id: str
    started: bool
    exit_code: int | None = None
    oom: bool = False
    error: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    drained: bool = False

    @property
    def running(self) -> bool:
        return self.started and self.exit_code is None


@dataclass(frozen=True, slots=True)
class ImageSeen:
    """What is known of one environment on one host: it is there, or it is being made or fetched right now."""

    present: bool = False
    building: bool = False


@dataclass(frozen=True, slots=True)
class ActionFailure:
    """An action that went wrong. `permanent`: trying again is useless. `count`: how often it failed in a row.

    `subnet_taken`: the network could not be made because somebody else uses its addresses.
    """

    message: str
    permanent: bool
    since: datetime
    count: int = 1
    subnet_taken: bool = False


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a host can give: cores, MiB, and GPU device ids."""

    cpus: float
    mem: int
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostSeen:
    """One host as it answered, or as we last knew it when `silent_since` is set.

    `isolated`: it gives each experiment a network of its own (Docker), so that every job may use the same port; False:
    all share the machine's loopback (processes), and `busy_ports` are taken. `networks` maps the experiments that have
    a network here to its subnet; `foreign_subnets` are those of everybody else.

    `taking`: False for a host that gets nothing new. `address` is where the other hosts reach it, `swarm` the id of the
    swarm that it belongs to (empty: none), `manager` whether it may make that swarm's networks.
    """

    capacity: Capacity
    silent_since: datetime | None = None
    containers: Mapping[JobKey, ContainerSeen] = field(default_factory=dict)
    images: Mapping[str, ImageSeen] = field(default_factory=dict)
    networks: Mapping[int, str] = field(default_factory=dict)
    foreign_subnets: tuple[str, ...] = ()
    isolated: bool = True
    busy_ports: frozenset[int] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    taking: bool = True
    address: str = ""
    swarm: str = ""
    manager: bool = False
    settles_in: float | None = None  # seconds after which an observation tells how a container ended; None: it is known


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of the host, or a volume of this name, inside a job. `makes`: a missing folder is made, for root."""

    source: str
    target: str
    read_only: bool = False
    volume: Volume | None = None
    makes: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that an executor needs to start one job; made by `planning.launch`, pure data."""

    key: JobKey
    server: str  # id of the server that owns it
    title: str  # `paul.4.worker.1`, for people
    hostname: str
    image: Image
    command: tuple[str, ...]
    environment: Environment
    resources: Resources
    limits: Limits
    shm_size: int  # MiB
    owner: Owner
    snapshot: str
    mounts: tuple[Mount, ...] = ()
    network: Network = Network.BRIDGE
    address: str | None = None
    hosts: tuple[tuple[str, str], ...] = ()  # names of the other jobs and their addresses
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement of a running job. `cpu` in percent of one core; memory in bytes; GPU fields None without GPUs."""

    at: datetime
    cpu: float
    mem_used: int
    mem_total: int
    gpu: float | None = None
    gpu_mem_used: int | None = None
    gpu_mem_total: int | None = None


class Frame(NamedTuple):
    """One piece of a job's output as the engine keeps it: `at` with its nanoseconds as text, `data` without that
    prefix.

    `stream` is 1 for stdout, 2 for stderr, 3 for the engine's own words. A tuple, for there are a hundred thousand a
    second.
    """

    at: str
    stream: int
    data: bytes


@dataclass(frozen=True, slots=True)
class LogCursor:
    """Where the reader of a job's log stops, and where the next reader goes on."""

    at: str = ""  # timestamp of the last frame that the store holds; empty before the first
    frames_held: int = 0  # frames with exactly this timestamp that the store holds
