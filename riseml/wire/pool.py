"""The shapes of the pool, and of the explanations why something runs there or waits."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from riseml.wire.words import StateName


class ShortageView(TypedDict):
    """One thing that a host lacks for a job: `cpus` (cores), `mem` (MiB), `gpus` or a `label`. `held_by` are the IDs of
    the experiments that have it; `text` says it all.
    """

    lack: Literal["cpus", "mem", "gpus", "label"]
    needs: float
    free: float
    total: float
    held_by: list[str]
    text: str


class JobFitView(TypedDict):
    """A job on a host; no shortage where it alone would have room."""

    job: str
    shortages: list[ShortageView]


class HostFitView(TypedDict):
    """A host for an experiment that waits. `obstacle` is why it is out of the question; null: the jobs say why not.
    `jobs` is empty for a host that has never answered.
    """

    host: str
    obstacle: Literal["silent", "lost", "drained", "stale"] | None
    text: str
    jobs: list[JobFitView]


class BlockerView(TypedDict):
    """One thing that an experiment waits for; `by` are the IDs of those in its way."""

    block: str
    text: str
    by: list[str]


class QueuePlaceView(TypedDict):
    """The place in the queue; `position` 1 is next. `ahead` are the IDs of those before it."""

    position: int
    length: int
    ahead: list[str]


class JobPlaceView(TypedDict):
    """Where a job is, and why there. `alternatives` are other hosts that would have room for it now."""

    job: str
    state: StateName
    host: str
    gpus: list[str]
    address: str | None
    port: int | None
    why: str
    alternatives: list[str]


class ExplanationView(TypedDict):
    """Why an experiment waits (`queue`, `blockers`, `hosts`), or runs where it runs (`jobs`, `network`)."""

    id: str
    phase: Literal["prepares", "waits", "placed", "ended"]
    state: StateName
    reason: str
    summary: str
    queue: QueuePlaceView | None
    blockers: list[BlockerView]
    hosts: list[HostFitView]
    jobs: list[JobPlaceView]
    network: Literal["bridge", "overlay", "host"] | None
    network_host: str | None


class HostView(TypedDict):
    """One host of the pool.

    `state`: `silent` is a host that does not answer, `draining` one that gets nothing new and still runs something,
    `drained` one that runs nothing any more. `drained` also tells that of one that is silent: somebody has taken it out
    of use. `message` says why it is silent. `address` is where the other hosts reach
    it, `url` how the server does. `swarm` is its part in the swarm, empty without one. `jobs` are the IDs of what holds
    a place there.
    """

    name: str
    state: Literal["up", "silent", "draining", "drained"]
    drained: bool
    message: str
    url: str
    address: str
    swarm: Literal["", "member", "manager"]
    labels: dict[str, str]
    jobs: list[str]
    engine: str
    cpus: float
    mem_mib: int
    gpus: int
    cpus_used: float
    mem_mib_used: int
    gpus_used: int


class PoolView(TypedDict):
    """The pool. `file` is its pool.yml, None when this machine is the pool; `trouble` says why what stands in the file
    now is not in force. `network` is how jobs on several hosts reach each other. `output` and `data` are where they are
    on every host.
    """

    file: str | None
    trouble: str
    network: Literal["bridge", "overlay", "host"]
    output: str
    data: str
    shared_output: bool
    hosts: list[HostView]


class PoolFinding(TypedDict):
    """One thing that `pool check` looked at; a note does not hurt, but should be known."""

    host: str
    topic: str
    outcome: Literal["ok", "note", "failed"]
    message: str


class PoolFindings(TypedDict):
    """Everything that `pool check` found."""

    findings: list[PoolFinding]


class PoolMember(TypedDict):
    """What `pool join` did to a host: it made the swarm, joined it, or had been in it."""

    host: str
    membership: Literal["created", "joined", "member"]


class PoolMembers(TypedDict):
    """The hosts of the swarm."""

    members: list[PoolMember]


class HostKeyView(TypedDict):
    """A key that a host shows to ssh. `pinned`: it is in known_hosts, no key of this kind is, or another one is."""

    kind: str
    fingerprint: str
    pinned: Literal["yes", "no", "other"]


class HostKeys(TypedDict):
    """What a host shows to ssh; `known_hosts` is the server's file of pinned keys for it."""

    host: str
    known_hosts: str
    keys: list[HostKeyView]


class HostFinding(TypedDict):
    """How the job of `system test` went on one host. `id` is its experiment; null when none could be started."""

    host: str
    outcome: Literal["ok", "failed"]
    id: str | None
    message: str


class HostFindings(TypedDict):
    """Everything that `system test` found."""

    findings: list[HostFinding]
