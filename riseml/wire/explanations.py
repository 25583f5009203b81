"""Why an experiment waits, or why it runs where it runs."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from riseml.wire.state_names import StateName

ResourceName = Literal["cpus", "mem", "gpus", "label", "gpu"]
"""The kind of thing that a host lacks for a job; `gpu` is the model of its GPUs, or their memory."""

ExplanationPhase = Literal["prepares", "waits", "placed", "ended"]
"""What an explanation is about.

prepares: a host builds its environment; the experiment is not in the queue yet. waits: it is in the queue, or its set
already runs as many experiments as it may. placed: its jobs have their hosts.
"""


class ShortageView(TypedDict):
    """One thing that a host lacks for a job."""

    lack: ResourceName
    needs: float  # cores, MiB or devices
    free: float  # on this host, in the same unit
    total: float  # what this host has in all, in the same unit
    held_by: list[str]  # IDs of the experiments that hold the rest
    text: str  # all of it as a sentence


class JobFitView(TypedDict):
    """One job on one host."""

    job: str  # its name
    shortages: list[ShortageView]  # empty where the job alone has room


class HostFitView(TypedDict):
    """One host for an experiment that waits."""

    host: str  # its name
    obstacle: Literal["silent", "lost", "drained", "stale"] | None  # why it is excluded; None: `jobs` says why not
    text: str  # the obstacle as a sentence
    jobs: list[JobFitView]  # empty for a host that has never answered


class BlockerView(TypedDict):
    """One thing that an experiment waits for."""

    block: str  # `room`, `reserved`, `concurrency`, ...
    text: str  # the same as a sentence
    by: list[str]  # IDs of the experiments that cause it


class QueuePlaceView(TypedDict):
    """The place in the queue."""

    position: int  # 1 is next
    length: int  # length of the queue
    ahead: list[str]  # IDs of the experiments before it


class JobPlaceView(TypedDict):
    """Where a job is, and why."""

    job: str  # its name
    state: StateName
    host: str  # its name
    node: str | None  # the machine that a cluster has chosen; None: the host is not a cluster, or has not started it
    gpus: list[str]  # device ids
    address: str | None  # where the other jobs reach it
    port: int | None  # where it listens; None: the framework's own port
    image: str  # before `install`
    why: str  # why this host
    alternatives: list[str]  # other hosts that have room for it now


class ActivityView(TypedDict):
    """The current work of a host on the environment of an experiment."""

    host: str  # its name
    # pull: it fetches an image; install: it runs the install steps; send: the environment comes from another host;
    # data: the server fetches data
    work: Literal["pull", "install", "send", "data"]
    what: str  # the image, the install step that runs, or the address of the data  # names: of the API
    done: int  # bytes; of install steps the number of the step that runs, from 1  # names: of the API
    total: int | None  # in the same unit; None: not known yet


class SetExplanation(TypedDict):
    """What the members of a set do, and what its search does next. The command makes it from several answers."""

    id: str  # ID of the set
    state: StateName
    counts: dict[str, int]  # how many members are in a state
    search: str | None  # what the search does next; None: every member was made at once
    members: list[ExplanationView]  # the first members that have not ended


class ExplanationView(TypedDict):
    """Why an experiment waits (`queue`, `blockers`, `hosts`), or why it runs where it runs (`jobs`, `network`)."""

    id: str  # ID of the experiment
    phase: ExplanationPhase
    state: StateName
    reason: str  # name of a Reason
    summary: str  # all of it in a sentence
    queue: QueuePlaceView | None  # None: it does not wait
    blockers: list[BlockerView]
    hosts: list[HostFitView]
    jobs: list[JobPlaceView]
    activities: list[ActivityView]  # empty unless a host builds, fetches or gets its environment
    network: Literal["bridge", "overlay", "host"] | None  # how its jobs reach each other
    network_host: str | None  # the host whose engine created a network across hosts
