"""Why an experiment waits, or runs where it runs: what `explain` answers. Values only; sentences are made here too, so
that the command line and the page say the same.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from riseml.names import HostName, JobName
from riseml.states import Network, Reason, State


class ExplanationPhase(enum.Enum):
    """What there is to explain."""

    PREPARES = "prepares"  # its environment is being made; it is not in the queue yet
    WAITS = "waits"  # in the queue, or held back by its set
    PLACED = "placed"  # its jobs have their hosts
    ENDED = "ended"


class Lack(enum.Enum):
    """What a host lacks for a job."""

    CPUS = "cpus"
    MEM = "mem"
    GPUS = "gpus"
    LABEL = "label"


class Obstacle(enum.Enum):
    """Why a host gets nothing new at all."""

    SILENT = "silent"  # does not answer, and may come back
    LOST = "lost"  # has not answered for longer than `lost_after`
    DRAINED = "drained"  # taken out by a person
    STALE = "stale"  # still holds what is left of other attempts; it is being removed


class BlockerKind(enum.Enum):
    """What an experiment waits for, apart from one host."""

    NEVER = "never"  # no host of the pool could hold it, even if the pool were empty
    NO_HOST = "no host"  # none answers and takes something new
    ROOM = "room"  # first in the queue: the room is not free yet, and is kept for it
    RESERVED = "reserved"  # what is free is kept for another one
    TURN = "turn"  # the place that it had is being cleared first
    CONCURRENCY = "concurrency"  # as many of its set run as may
    SUBNETS = "subnets"  # no addresses are left for a network of its own
    PORTS = "ports"  # no port is left on a host
    NETWORK = "network"  # would need several hosts, which are not connected or share no output


@dataclass(frozen=True, slots=True)
class Shortage:
    """One thing that one host lacks for one job.

    Args:
        lack: what.
        needs: how much the job needs: cores, MiB, devices; 0 for a label.
        free: how much of it is free for it.
        total: how much the host has.
        held_by: the experiments (ids of records) that hold some of it, in the order of their ids.
        text: all of that for people: `gpus: needs 2, 1 free of 4 (held by 7, 9)`.
    """

    lack: Lack
    needs: float
    free: float
    total: float
    held_by: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class JobFit:
    """One job on one host. `shortages` is empty where the job alone would have room now."""

    job: JobName
    shortages: tuple[Shortage, ...]


@dataclass(frozen=True, slots=True)
class HostFit:
    """One host for a gang that waits: why it is not considered at all, and why not, for each of the jobs."""

    host: HostName
    obstacle: Obstacle | None
    since: datetime | None  # of a host that does not answer
    text: str  # the obstacle for people; empty without one
    jobs: tuple[JobFit, ...]


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that an experiment waits for; `by` are the experiments (ids of records) that are in its way."""

    kind: BlockerKind
    text: str
    by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The place in the queue: `position` 1 is the next one of `length`; `ahead` are the ids of those before it."""

    position: int
    length: int
    ahead: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where a job is, and why there. `alternatives` are the other hosts that would have room for it now."""

    job: JobName
    state: State
    reason: Reason
    host: HostName
    gpus: tuple[str, ...]  # device ids
    address: str | None
    port: int | None
    why: str
    alternatives: tuple[HostName, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an experiment is where it is.

    `summary` says it in one sentence. `queue`, `blockers` and `hosts` are filled while it waits, `jobs`, `network` and
    `network_host` once it has its place.
    """

    experiment: int
    phase: ExplanationPhase
    state: State
    reason: Reason
    summary: str
    queue: QueuePlace | None = None
    blockers: tuple[Blocker, ...] = ()
    hosts: tuple[HostFit, ...] = ()
    jobs: tuple[JobPlace, ...] = ()
    network: Network | None = None
    network_host: HostName | None = None
