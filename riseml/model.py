"""The frozen records of all packages. No I/O. In the order of an experiment's life: `Plan` (what will run),
`Experiment` and `Job` (last saved), `Launch` (what an executor starts), `HostObservation` and `ContainerObservation`
(what a host said).
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from riseml.base.names import HostName, JobName, experiment_name, job_type
from riseml.base.records import dataclass
from riseml.base.roles import Role, Scope
from riseml.base.states import TERMINAL, CompanionKind, JobDuty, Network, Reason, State, Wanted
from riseml.spec.config.types import (
    DEFAULT_POLICY,
    EnvVariable,
    Goal,
    Limits,
    Parameter,
    Resources,
    RunPolicy,
    SearchSection,
    Shell,
)
from riseml.spec.pool.types import Volume
from riseml.spec.scalars.fronts import rank_fronts


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an experiment comes from, for a later run of it. No decision depends on it."""

    file: str = ""  # its riseml.yml, as the user named it
    revision: str = ""  # the git commit of the project, in hex; empty: no git repository
    clean: bool | None = None  # the files were those of the commit; None: not known
    rerun_of: str = ""  # the experiment that it repeats; empty: none
    missing: tuple[str, ...] = ()  # paths of the project that git had not filled: submodules, pointers of Git LFS


NO_ORIGIN = Origin()


@dataclass(frozen=True, slots=True)
class NodeKind:
    """The nodes of one size."""

    count: int
    cpus: int  # cores of one node
    mem: int  # MiB of one node
    gpus: int  # GPUs of one node


@dataclass(frozen=True, slots=True)
class OwnQueue:
    """The queue of a host that takes whole gangs, and decides where and when each gang starts."""

    nodes: tuple[NodeKind, ...]  # the largest first
    trouble: str = ""  # why the queue takes no gang now; empty: it takes gangs


Environment = tuple[tuple[str, str], ...]
"""Environment variables in order: (name, value). A tuple, so that a record is hashable and its JSON is stable."""


@dataclass(frozen=True, slots=True)
class Image:
    """An environment of jobs: a base image and the `install` steps on top of it."""

    base: str  # reference of the base image
    install: tuple[str, ...] = ()  # shell lines
    files: tuple[str, ...] = ()  # project files that the steps may read, relative paths
    digest: str = ""  # SHA-256 (hex) of base, steps and the content of `files`; empty without steps
    resolved: str = ""  # the content of `base`: `python@sha256:...`, or the ID of an image; empty: not known
    refresh: bool = False  # `train --pull`: when the base is pulled, its tag at the engine is moved to it
    shell: Shell = Shell.SH  # shell of the steps; records from versions before the key `shell` have none
    holder: str = ""  # who alone uses the environment, on a team's server: `user:paul`; empty: everybody

    @property
    def reference(self) -> str:
        """The name of the image at the engine. Once the base is resolved, the name stands for these bytes alone."""
        if not self.install:
            return self.resolved or self.base
        recipe = hashlib.sha256(f"{self.digest} {self.resolved}".encode()).hexdigest() if self.resolved else self.digest
        return f"riseml/environment:{recipe[:20]}"


Resolved = tuple[tuple[str, str], ...]
"""Base images, and what each stands for: (`Image.base`, `Image.resolved`)."""


def resolve_base(image: Image, resolved: Resolved) -> Image:
    """Return the environment with what its base stands for, where that is known."""
    reference = dict(resolved).get(image.base)
    return replace(image, resolved=reference) if reference else image


def copy_name(reference: str) -> str:
    """Return the name of an image at an engine that got it from another engine.

    An engine keeps no digest of a registry for an image that it did not pull, and no image without a name.
    """
    if "@" in reference or reference.startswith("sha256:"):
        return f"riseml/image:{hashlib.sha256(reference.encode()).hexdigest()[:20]}"
    return reference


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """One job before it has a place."""

    name: JobName
    part: JobDuty
    resources: Resources  # guaranteed: cores, MiB, number of GPUs
    limits: Limits  # hard limits: cores, MiB
    run: tuple[str, ...]  # shell lines; their placeholders are filled at the launch
    environment: Environment = ()
    grace: float = 0.0  # seconds that the job may go on after the experiment succeeded
    shell: Shell = Shell.SH  # shell of `run`; records from versions before the key `shell` have none


@dataclass(frozen=True, slots=True)
class Companion:
    """What makes an experiment a companion: it serves a user beside other work, and trains nothing."""

    kind: CompanionKind
    left_after: float | None = None  # seconds without a client after which it ends; None: its program ends by itself
    shows: tuple[str, ...] = ()  # names of the experiments and sets whose outputs it reads: `4`, `144`
    reads: tuple[str, ...] = ()  # their folders below the root of outputs: all that it mounts, read-only; empty: any


@dataclass(frozen=True, slots=True)
class Lineage:
    """The place of a trial in a search with a population."""

    generation: int  # from 1
    parent: int | None = None  # number of the trial whose files it begins with; None: it begins with nothing
    parent_record: int | None = None  # id of the experiment of that trial
    inherit: tuple[str, ...] = ()  # patterns of these files; empty: all


@dataclass(frozen=True, slots=True)
class Predecessor:
    """An experiment, or a set, whose end another experiment waits for. A set has the `sub` of none of its members."""

    record: int  # id of the record; of a set, of its first experiment
    owner: str  # its user
    number: int
    sub: int | None = None  # within its set
    set_id: int | None = None  # key in the store of the set that is waited for; None: one experiment
    team_project: str | None = None  # whose members see it; None: it belongs to its user alone
    accepts_any_end: bool = False  # it may also have failed or been killed
    has_input: bool = False  # its output is read

    @property
    def name(self) -> str:
        """Its name for its user."""
        return experiment_name(self.number, self.sub)


@dataclass(frozen=True, slots=True)
class InputFolder:
    """An entry of `inputs`: a part of the output of another experiment, or of a set."""

    name: str  # as the jobs know it: `model`
    folder: str  # the whole output, below the root of outputs: `paul/toaster/4`
    path: str = ""  # in that folder; empty: all of it

    @property
    def below(self) -> str:
        """The path below the root of outputs."""
        return f"{self.folder}/{self.path}" if self.path else self.folder


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run: the environments and every job."""

    project: str
    image: Image  # image of every job whose role has none of its own
    jobs: tuple[PlannedJob, ...]
    framework: str  # name of the plug-in that binds the addresses
    parameters: Environment = ()  # this point of the grid
    options: Environment = ()  # what the plug-in needs again at the launch
    policy: RunPolicy = DEFAULT_POLICY  # what `train` says about each run
    secret_variables: tuple[tuple[str, str], ...] = ()  # variables of `env`, and the secrets whose values they have
    companion: Companion | None = None  # None: it trains
    origin: Origin = NO_ORIGIN
    role_images: tuple[tuple[str, Image], ...] = ()  # (role, environment) of each role whose environment is not `image`
    role_outputs: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (role, patterns) of each role with its own
    lineage: Lineage | None = None  # None: it is no trial of a population
    after: tuple[Predecessor, ...] = ()  # what must have ended before its jobs get their places
    inputs: tuple[InputFolder, ...] = ()  # outputs that its jobs read
    bound: bool = False  # a key of its team project alone has submitted it: it uses nothing that is its user's alone

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The secrets that its jobs get, each once."""
        files = (file.name for file in self.policy.secrets)
        return tuple(dict.fromkeys((*(name for _, name in self.secret_variables), *files)))

    @property
    def images(self) -> tuple[Image, ...]:
        """The environments of its jobs, each once: that of roles without their own first."""
        return tuple(dict.fromkeys((self.image, *dict(self.role_images).values())))

    def list_outputs(self, job: JobName) -> tuple[str, ...]:
        """Return the patterns of the files that are moved into OUTPUT_DIR when a job ends."""
        return dict(self.role_outputs).get(job_type(job), self.policy.outputs)


# What the server last saved


@dataclass(frozen=True, slots=True)
class Owner:
    """The user of an experiment. The files that its jobs write belong to this POSIX user and group."""

    user: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Caller:
    """Who has sent a request, and what they may do. The gate makes it for each request."""

    owner: Owner  # of the experiments that they submit
    role: Role  # on the server
    scope: Scope  # of the key
    projects: tuple[tuple[str, Role], ...] = ()  # their team projects, and what they may do there
    project: str | None = None  # the one team project to which the key is bound
    key: str = ""  # id of the key or the session; empty on the unix socket
    address: str = ""  # from which the request came; empty on the unix socket

    @property
    def user(self) -> str:
        """Their name."""
        return self.owner.user


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an experiment ends: the first cause, saved as soon as it is known, before its consequences."""

    state: State
    reason: Reason
    at: datetime
    job: JobName | None = None  # the job that decided; None: a user or riseml itself
    message: str = ""
    again: bool = False  # another attempt follows when every job of this one has ended


@dataclass(frozen=True, slots=True)
class Job:
    """The record of one job."""

    name: JobName
    part: JobDuty
    resources: Resources

    state: State = State.CREATED
    reason: Reason = Reason.SUBMITTED
    message: str = ""  # details of the reason
    attempt: int = 1  # counted from 1

    host: HostName | None = None  # None: no place yet
    address: str | None = None  # IP address or name, as the other jobs reach it
    port: int | None = None  # the one port that its framework may use; None: any, the job has its own address
    gpus: tuple[str, ...] = ()  # device ids

    shell: Shell | None = None  # that read its lines; None: it has not said yet which it is
    exit_code: int | None = None
    oom: bool = False  # a process of the job ran out of memory
    started_at: datetime | None = None  # clock of the host, as its lines have
    ended_at: datetime | None = None  # clock of the host; of one without a recorded end, when it was last known to run
    ahead: float = 0.0  # seconds by which the host's clock is ahead of the server's, as far as these times show

    ending: Reason | None = None  # why the server ends it; None: the server does not
    ending_at: datetime | None = None  # since when
    unseen_since: datetime | None = None  # since when its host is missing: not in the pool, or never seen so far

    @property
    def begun_at(self) -> datetime | None:
        """When it started, by the server's clock."""
        return None if self.started_at is None else self.started_at - timedelta(seconds=self.ahead)

    @property
    def over_at(self) -> datetime | None:
        """When it ended, by the server's clock."""
        return None if self.ended_at is None else self.ended_at - timedelta(seconds=self.ahead)


@dataclass(frozen=True, slots=True)
class Experiment:
    """The record of one experiment."""

    id: int  # key in the store
    owner: Owner
    number: int  # counted per user
    project: str
    plan: Plan
    jobs: tuple[Job, ...]  # the build job, then the gang
    created_at: datetime

    sub: int | None = None  # number in its set; None: not in a set
    set_id: int | None = None  # key of its set in the store; None: not in a set
    concurrency: int = 1  # how many experiments of the set may run at once
    paused: bool = False  # a user has paused its set: none of its experiments gets a place
    snapshot: str = ""  # digest of the project archive; empty: no files
    resolved: Resolved = ()  # each base is set once, before the first job gets a place, and never changed
    environment: Environment = field(default=(), repr=False)  # variables from the user, sealed

    wanted: Wanted = Wanted.RUN  # names: of the stored record
    state: State = State.CREATED
    reason: Reason = Reason.SUBMITTED
    message: str = ""  # details of the reason
    verdict: Verdict | None = None  # None: the experiment goes on

    network: Network = Network.BRIDGE  # chosen at placement
    network_host: HostName | None = None  # creates a network across hosts; None: all jobs are on one host
    subnet: str | None = None  # CIDR; None: no private network

    placed_at: datetime | None = None  # None: no place
    started_at: datetime | None = None  # of its first attempt
    ended_at: datetime | None = None  # of its last attempt, by its jobs
    waited: float = 0.0  # seconds between two attempts, in which none of its jobs ran
    waits_since: datetime | None = None  # when the last attempt ended; None: another one runs, or none follows
    closed: bool = False  # the experiment has ended, and nothing of it is left on any host
    version: int = 0  # the revision that was read; a save must name it
    team_project: str | None = None  # whose members see it; None: it belongs to its user alone

    @property
    def awaits_resume(self) -> bool:
        """True when it gets no place because a user has paused its set. What has begun goes on, also with a retry."""
        return self.paused and self.started_at is None

    @property
    def awaits_others(self) -> bool:
        """True when it waits for other experiments to end, and not for a place."""
        return self.state is State.PENDING and self.reason is Reason.AFTER

    @property
    def reads(self) -> tuple[str, ...]:
        """The folders below the root of outputs that it reads instead of having an output and code of its own."""
        return () if self.plan.companion is None else self.plan.companion.reads

    @property
    def needs_variables(self) -> bool:
        """Whether a job may still start with its variables, or a copy of its output be made with keys among them.

        An experiment can stay open for long after that, for example until its whole log is stored.
        """
        is_over = self.state in TERMINAL and all(job.state in TERMINAL for job in self.jobs)
        return not self.closed and not (is_over and self.plan.policy.save is None)

    @property
    def images(self) -> tuple[Image, ...]:
        """The environments of its jobs, each once, with what their bases were resolved to. Most have one."""
        return tuple(resolve_base(image, self.resolved) for image in self.plan.images)

    @property
    def gang(self) -> tuple[Job, ...]:
        """The jobs that get their places together: all but the build job."""
        return tuple(job for job in self.jobs if job.part is not JobDuty.PREPARES)

    @property
    def build(self) -> Job | None:
        """The job that builds the environment."""
        return next((job for job in self.jobs if job.part is JobDuty.PREPARES), None)

    def image_of(self, job: JobName) -> Image:
        """Return the environment of a job, with what its base was resolved to."""
        return resolve_base(dict(self.plan.role_images).get(job_type(job), self.plan.image), self.resolved)

    def key_of(self, job: Job) -> JobKey:
        """Return the identity of a job's container in its current attempt."""
        return JobKey(self.id, job.name, job.attempt)


@dataclass(frozen=True, slots=True)
class World:
    """The records of every experiment that is not closed."""

    experiments: tuple[Experiment, ...]  # oldest first
    reader: Caller | None = None  # for whom something about them is put into words; None: for nobody


@dataclass(frozen=True, slots=True, order=True)
class JobKey:
    """The identity of one container or process group, as its labels say."""

    experiment: int  # id of the record
    job: JobName
    attempt: int


# What one pass saw


@dataclass(frozen=True, slots=True)
class ContainerObservation:
    """One container or process group, as its host reported it."""

    key: JobKey
    id: str
    started: bool
    exit_code: int | None = None  # None: it runs, or never started
    oom: bool = False  # a process in it ran out of memory
    error: str = ""  # why its start failed; of a started one: why its host stopped it
    started_at: datetime | None = None  # clock of the host
    finished_at: datetime | None = None  # clock of the host; None of one that has ended: the time is not known
    ran: float | None = None  # seconds that it has run so far, by a monotonic clock; None: its host cannot say
    last_sign: datetime | None = None  # of one without a recorded end: its last trace on the host
    drained: bool = False  # it has ended, and the server has its whole log
    late: bool = False  # its host has not said how it is; `started` is True, and nothing else is known
    waits: str = ""  # why the job still waits in the queue of its host; empty: the job waits in no queue
    address: str | None = None  # where the other jobs reach it, if only its host knows
    port: int | None = None  # the port where the other jobs reach it, if only its host knows
    ending: Reason | None = None  # why its host ended it, or did not start it, if the job is not the cause
    node: str | None = None  # the machine that its host has chosen for it, if the host has several
    shell: Shell | None = None  # that the job has reported; None: none yet

    @property
    def running(self) -> bool:
        return self.started and self.exit_code is None


@dataclass(frozen=True, slots=True)
class ImageObservation:
    """One environment on one host."""

    present: bool = False
    building: bool = False  # the host builds or fetches it
    resolved: str = ""  # the image behind this tag here, see `Image.resolved`; empty: not a tag, or not known


@dataclass(frozen=True, slots=True)
class ActionFailure:
    """An action that failed the last time."""

    message: str
    permanent: bool  # another try cannot succeed
    since: datetime  # time of the first failure in a row
    count: int = 1  # failures in a row
    lasted: timedelta = timedelta()  # from the first to the last failure in a row
    subnet_taken: bool = False  # another network uses the addresses of the experiment's network
    image_missing: bool = False  # the host does not have the image and cannot fetch it; another host may have it


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a host can give."""

    cpus: float  # cores
    mem: int  # MiB
    gpus: tuple[str, ...] = ()  # device ids


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, or one part of a GPU that is divided (MIG), as its driver names it."""

    id: str  # as jobs get it: an index, or the UUID of a MIG device
    uuid: str
    name: str  # name of the model: `NVIDIA A100-SXM4-40GB`
    mem: int  # MiB; 0: not known
    driver: str = ""  # version of the driver
    bus: str = ""  # address on the PCI bus: `00000000:3B:00.0`
    serial: str = ""  # serial number of the board; empty: its driver does not report it, as for most cards of desktops


@dataclass(frozen=True, slots=True)
class HostObservation:
    """One host as it answered, or as it last answered when `silent_since` is set."""

    capacity: Capacity
    silent_since: datetime | None = None  # None: it answers

    containers: Mapping[JobKey, ContainerObservation] = field(default_factory=dict)
    images: Mapping[str, ImageObservation] = field(default_factory=dict)  # by reference; only the requested ones
    networks: Mapping[int, str] = field(default_factory=dict)  # id of the experiment -> subnet of its network here
    foreign_subnets: tuple[str, ...] = ()  # subnets of networks that are not riseml's, CIDR

    isolated: bool = True  # False: no network per experiment, all jobs share the machine's loopback (processes)
    busy_ports: frozenset[int] = frozenset()  # ports that are in use on the machine
    devices: Mapping[str, Gpu] = field(default_factory=dict)  # its GPUs by device id; without those that are not known
    labels: Mapping[str, str] = field(default_factory=dict)
    taking: bool = True  # False: drained, it gets no new jobs

    address: str = ""  # where the other hosts reach it; empty: unknown
    swarm: str = ""  # id of the host's swarm; empty: none
    swarm_managers: frozenset[str] = frozenset()  # ids of managers of that swarm, also some that have gone
    manager: bool = False  # the host may create networks in its swarm (it is a manager)
    leaderless: bool = False  # a manager whose swarm has no leader now: it can create and remove no network of it

    queue: OwnQueue | None = None  # the host places whole gangs itself; None: riseml places its jobs
    settles_in: float | None = None  # seconds until an observation shows how a container ended; None: it is known


# What an executor starts, and what a job reports


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of the host, or a volume, inside a job."""

    source: str  # path on the host, or name of the volume
    target: str  # path inside
    read_only: bool = False
    volume: Volume | None = None  # None: a folder
    makes: bool = False  # a missing folder is created, owned by root


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that an executor needs to start one job; made by `planning.launch`."""

    key: JobKey
    server: str  # id of the server that owns it
    title: str  # for people: `paul.4.worker.1`
    hostname: str
    image: Image
    command: tuple[str, ...]
    environment: Environment = field(repr=False)  # may hold secrets
    resources: Resources
    limits: Limits
    shm_size: int  # MiB
    owner: Owner
    snapshot: str  # digest of the project archive; empty: no files
    mounts: tuple[Mount, ...] = ()
    network: Network = Network.BRIDGE
    subnet: str | None = None  # CIDR of the gang's private network; None: it has none
    address: str | None = None
    hosts: tuple[tuple[str, str], ...] = ()  # (name, address) of every job of the gang
    gpus: tuple[str, ...] = ()  # device ids
    secrets: Environment = field(default=(), repr=False)  # names of files in memory, and what they hold
    event_readers: int = 0  # jobs of the experiment beside which files with metrics are read; 0: not here
    event_files: tuple[str, ...] = ()  # patterns below the working folder where event files may be, too
    trackers: tuple[str, ...] = ()  # whose files these are: `tensorboard`, `mlflow`

    def describe_reader(self) -> dict[str, int | tuple[str, ...]] | None:
        """Return what a supervisor must know of the reader of files with metrics; None: there is none."""
        if not self.event_readers:
            return None
        return {"jobs": self.event_readers, "patterns": self.event_files, "trackers": self.trackers}


class Frame(NamedTuple):
    """One piece of a job's output as the engine keeps it. A tuple, because there are a hundred thousand a second."""

    at: str  # timestamp with nanoseconds, as the engine wrote it; empty for the engine's own messages
    stream: int  # 1: stdout, 2: stderr, 3: the engine's own messages
    data: bytes  # without the timestamp; ends with a newline unless the line goes on in the next frame


class FramePosition(NamedTuple):
    """Where a reader has stopped in one stream of a job's log: stdout, stderr or the notes of riseml."""

    at: str  # timestamp of the last frame of the stream that the store holds
    frames_held: int  # frames of the stream with exactly this timestamp that the store holds
    goes_on: bool = False  # the last frame ends no line: the next one has the same timestamp, whenever it comes


@dataclass(frozen=True, slots=True)
class LogCursor:
    """Where a reader of a job's log has stopped, and where the next reader continues.

    Timestamps grow in each stream, and not from one stream to the other: an engine takes the time of a frame before it
    writes the frame, and writes stdout and stderr side by side. Every piece of a long line has the timestamp of the
    first one, so that a progress bar of an hour comes with a timestamp an hour old.
    """

    positions: Mapping[int, FramePosition] = field(default_factory=dict)  # by stream, where the store holds frames
    lags: bool = False  # the store may lack frames of a stream that are older than those it holds of another one


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a running job moves, in bytes per second since the sample before. None: its host does not count it."""

    net_in: float | None = None
    net_out: float | None = None
    disk_read: float | None = None
    disk_write: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement of a running job. The GPU fields are None for a job without GPUs."""

    at: datetime
    cpu: float  # percent of one core
    mem_used: int  # bytes
    mem_total: int  # bytes
    gpu: float | None = None  # percent
    gpu_mem_used: int | None = None  # bytes
    gpu_mem_total: int | None = None  # bytes
    traffic: Traffic | None = None  # None: the host does not count it


MOST_TRIALS = 1_000  # trials of one set
FIRST_TRIALS = 5  # failed trials that end a search in which none has ended well, unless it has `max_failed`

Point = tuple[tuple[str, str], ...]
"""The value of each parameter as jobs get it, in the order of riseml.yml."""


class TrialOutcome(enum.Enum):
    """The result of a trial as its search has it."""

    COMPLETE = "COMPLETE"  # it ended well, and reported the metric
    STOPPED = "STOPPED"  # it was stopped early, and had reported the metric
    FAILED = "FAILED"  # it failed or was killed, or reported no metric


class SearchEnd(enum.Enum):
    """Why a search makes no further trials; `END_SENTENCES` has the sentence that users read."""

    COMPLETED = "COMPLETED"
    EXHAUSTED = "EXHAUSTED"
    TOO_MANY_FAILED = "TOO_MANY_FAILED"
    FIRST_FAILED = "FIRST_FAILED"
    STOPPED = "STOPPED"
    KILLED = "KILLED"
    BROKEN = "BROKEN"


END_SENTENCES: dict[SearchEnd, str] = {
    SearchEnd.COMPLETED: "all trials have ended",
    SearchEnd.EXHAUSTED: "every combination of the parameters was tried",
    SearchEnd.TOO_MANY_FAILED: "more trials failed than search.max_failed allows",
    SearchEnd.FIRST_FAILED: f"the first {FIRST_TRIALS} trials failed, and none ended well",
    SearchEnd.STOPPED: "a user has stopped the search",
    SearchEnd.KILLED: "killed by a user",
    SearchEnd.BROKEN: "riseml itself failed to choose a point; see the server's log",
}


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What a search does, as it was submitted."""

    search: SearchSection  # its seed is set
    parameters: tuple[Parameter, ...]
    seeds: tuple[str, ...] = ()  # values of the parameter `seed` with which each point runs; empty: each runs once


@dataclass(frozen=True, slots=True)
class Trial:
    """One point that a search tries, with its experiment."""

    number: int  # within its set, from 1; the experiment has it as `sub`
    experiment: int  # id of the record
    point: Point
    asked_after: int  # trials of the set whose results the search had when this one was made
    placed: bool = False  # its experiment has or had a place
    closed: bool = False  # its experiment has ended, and its whole log is stored: the search takes its result
    finished: bool = False  # its experiment ended well
    stopped: bool = False  # the search has decided to stop it early
    stopped_early: bool = False  # its experiment ended because of that: it had not ended well before
    reached: tuple[tuple[int, float], ...] = ()  # steps at which the search compared it, and its values there
    outcome: TrialOutcome | None = None  # None: the search has no result yet
    # the position of its result in the order in which the search got the results, from 1
    told: int | None = None  # names: of the stored record
    # the best value of the metric; None: the search has no result yet, or no value was reported
    value: float | None = None
    message: str = ""  # why it counts as failed
    ended: bool = False  # its experiment has ended; its log may not be whole yet
    values: tuple[float, ...] = ()  # of several objectives, `value` first; empty: `value` is all
    excess: float = 0.0  # by how much its metrics fail the constraints; 0: they meet all
    runs: tuple[int, ...] = ()  # of a trial that `planning.repetition` has folded: the numbers of its runs

    @property
    def first_run(self) -> int:
        """The number of its first run within the set."""
        return self.runs[0] if self.runs else self.number


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """A set whose points a search chooses, as the server last saved it."""

    id: int  # key of the set in the store
    user: str
    number: int  # number of the set
    plan: SearchPlan
    concurrency: int  # trials at the same time
    wanted: Wanted  # names: of the stored record
    most_trials: int  # points; grows when the user adds trials
    trials: tuple[Trial, ...] = ()  # runs, by number
    end: SearchEnd | None = None  # None: it goes on
    variables: tuple[EnvVariable, ...] = ()  # `train.env`: what the trials get, without the caller's values
    paused: bool = False  # no further trial is made or gets a place until the user resumes it

    @property
    def live(self) -> tuple[Trial, ...]:
        """The trials whose results the search does not have yet."""
        return tuple(trial for trial in self.trials if trial.outcome is None)

    def count(self, outcome: TrialOutcome) -> int:
        """Return how many trials have this outcome."""
        return sum(trial.outcome is outcome for trial in self.trials)

    def list_front(self) -> tuple[Trial, ...]:
        """Return the trials of several objectives that no other one beats; empty with one objective."""
        signs = [-1.0 if goal is Goal.MAXIMIZE else 1.0 for _, goal in self.plan.search.objectives]
        good = [trial for trial in self._list_good() if trial.values]
        rows = [tuple(sign * value for sign, value in zip(signs, trial.values, strict=True)) for trial in good]
        return tuple(trial for trial, rank in zip(good, rank_fronts(rows), strict=True) if rank == 1)

    def find_best(self) -> Trial | None:
        """Return the trial with the best value, the first of several; None while the search has no result, and with
        several objectives.
        """
        good = [] if self.plan.search.metrics else self._list_good()
        sign = -1.0 if self.plan.search.goal is Goal.MAXIMIZE else 1.0
        return min(good, key=lambda trial: sign * (trial.value or 0.0), default=None)

    def _list_good(self) -> list[Trial]:
        """Return the trials that may be the best one: with a value, and not beyond the constraints. With several seeds
        a stopped one is not, because it has run with one.
        """
        bad = (TrialOutcome.FAILED, TrialOutcome.STOPPED) if self.plan.seeds else (TrialOutcome.FAILED,)
        ended_well = [trial for trial in self.trials if trial.value is not None and trial.outcome not in bad]
        return [trial for trial in ended_well if trial.excess == 0]
