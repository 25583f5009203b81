"""The answer of `explain`: why an experiment waits, or why its jobs run where they run. Values only.

The values contain their sentences, so that every client shows the same ones.
"""

from __future__ import annotations

import enum
from datetime import datetime

from riseml.base.names import HostName, JobName
from riseml.base.records import dataclass
from riseml.base.states import Network, Reason, State


class ExplanationPhase(enum.Enum):
    """What an explanation is about."""

    PREPARES = "prepares"  # a host builds its environment; the experiment is not in the queue yet
    WAITS = "waits"  # in the queue, or its set already runs as many experiments as it may
    PLACED = "placed"  # its jobs have their hosts
    ENDED = "ended"


class ResourceKind(enum.Enum):
    """The kind of resource that a host lacks for a job."""

    CPUS = "cpus"
    MEM = "mem"
    GPUS = "gpus"
    LABEL = "label"
    GPU = "gpu"


class HostExclusion(enum.Enum):
    """Why a host gets no new jobs."""

    SILENT = "silent"  # does not answer; may come back
    LOST = "lost"  # has not answered for longer than `lost_after`
    DRAINED = "drained"  # a user took it out of use
    STALE = "stale"  # still runs jobs of earlier attempts, which the server removes


class BlockerKind(enum.Enum):
    """The kind of thing that an experiment waits for."""

    NEVER = "never"  # no host of the pool could hold it, even if the pool were empty
    NO_HOST = "no host"  # no host answers and takes new jobs
    ROOM = "room"  # the resources are not free yet
    RESERVED = "reserved"  # what is free is kept for another experiment
    TURN = "turn"  # its hosts are still clearing its last place
    CONCURRENCY = "concurrency"  # its set already runs as many experiments as it may
    SUBNETS = "subnets"  # no subnet is left for its network
    DATA = "data"  # no host that has room has its data
    PORTS = "ports"  # a host has too few free ports
    LEADER = "leader"  # it needs several hosts, whose swarm has no leader
    NETWORK = "network"  # it needs several hosts, and they are not connected or share no output


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One resource that one host lacks for one job. Amounts are cores, MiB or devices; 0 for a label or a model."""

    lack: ResourceKind
    needs: float  # what the job needs
    free: float  # what is free on the host
    total: float  # what the host has
    held_by: tuple[int, ...]  # ids of the experiments that hold some of it, in order
    text: str  # for people: `gpus: needs 2, 1 free of 4 (held by 7, 9)`


@dataclass(frozen=True, slots=True)
class JobFit:
    """One job on one host, as if the job were alone."""

    job: JobName
    shortages: tuple[Shortfall, ...]  # what the job lacks; empty: the job would fit now


@dataclass(frozen=True, slots=True)
class HostFit:
    """One host for a gang that waits."""

    host: HostName
    obstacle: HostExclusion | None  # why it gets no new jobs; None: it does
    since: datetime | None  # since when it does not answer; None: it answers
    text: str  # the obstacle for people, or why the gang does not get its room; empty: jobs lack something
    jobs: tuple[JobFit, ...]  # one for each job of the gang


@dataclass(frozen=True, slots=True)
class WaitReason:
    """One thing that an experiment waits for."""

    kind: BlockerKind
    text: str  # for people
    by: tuple[int, ...] = ()  # ids of the experiments that it waits for


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The position of an experiment in the queue."""

    position: int  # 1: the next one
    length: int  # of the queue
    ahead: tuple[int, ...]  # ids of the experiments before it, the next one first


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where a job runs, and why there."""

    job: JobName
    state: State
    reason: Reason
    host: HostName
    node: str | None  # the machine that the host has chosen; None: the host is a single machine, or has not reported it
    gpus: tuple[str, ...]  # device ids
    address: str | None
    port: int | None
    image: str  # its base image
    why: str  # the rules of placement that chose the host, for people
    alternatives: tuple[HostName, ...]  # other hosts that would have room for it now


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an experiment waits, or why its jobs run where they run."""

    experiment: int  # id of the record
    phase: ExplanationPhase
    state: State
    reason: Reason
    summary: str  # one sentence, for people

    # while it waits
    queue: QueuePlace | None = None
    blockers: tuple[WaitReason, ...] = ()
    hosts: tuple[HostFit, ...] = ()

    # once it has a place
    jobs: tuple[JobPlace, ...] = ()
    network: Network | None = None
    network_host: HostName | None = None
