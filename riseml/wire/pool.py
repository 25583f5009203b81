"""The pool and its hosts, and what the commands `pool` and `system test` find there."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class HostView(TypedDict):
    """One host of the pool."""

    name: str
    # silent: it does not answer; draining: it gets no new jobs and still runs some; drained: it runs none any more
    state: Literal["up", "silent", "draining", "drained"]
    drained: bool  # it gets no new jobs until `riseml pool resume`, also while it is silent
    message: str  # why it is silent; else empty
    url: str  # how the server reaches its engine
    address: str  # where the other hosts reach it
    swarm: Literal["", "member", "manager"]  # its role in the swarm; empty: it is in no swarm
    labels: dict[str, str]  # from pool.yml, and `host`
    jobs: list[str]  # IDs of the jobs that hold resources there
    engine: str  # its engine and version; empty while silent
    cpus: float  # cores of the host
    mem_mib: int  # memory of the host
    gpus: int  # GPUs of the host
    gpu_mem_mib: int  # memory of these GPUs together; 0: none, or not known
    gpu_driver: str  # version of their driver; empty: not known
    cpus_used: float  # cores that jobs hold
    mem_mib_used: int  # memory that jobs hold
    gpus_used: int  # GPUs that jobs hold


class GoneHost(TypedDict):
    """A host that pool.yml does not name any more, and on which jobs still run."""

    host: str  # its name
    jobs: list[str]  # IDs of the jobs
    seconds_left: float  # until the first of them counts as lost


class PoolView(TypedDict):
    """The pool."""

    file: str | None  # its pool.yml; None: this machine is the pool
    trouble: str  # why the present text of the file is not in force; empty: it is
    network: Literal["bridge", "overlay", "host"]  # how jobs on several hosts reach each other
    swarm_trouble: str  # why the swarm of the hosts has no leader, and what to do; empty: it has one, or none is needed
    output: str  # where outputs are on every host
    data: str  # where the data is on every host
    shared_output: bool  # every host sees the same outputs
    hosts: list[HostView]
    gone: list[GoneHost]  # hosts that the file does not name any more, with jobs  # names: of the API


class QueuedView(TypedDict):
    """One experiment that waits for a place."""

    position: int  # in the queue, from 1
    id: str
    project: str
    created_at: str  # RFC 3339: when it was submitted
    summary: str  # why it waits, for people


class QueueView(TypedDict):
    """The experiments that wait for a place, in the order in which they get one."""

    length: int  # how many wait in all
    waiting: list[QueuedView]  # the first of them


class HostUsage(TypedDict):
    """What the jobs of one host have used together: lists of the same length, one place for each `step` seconds."""

    name: str
    cpus: float | None  # cores of the host now; None: it has left the pool, or does not answer
    mem_mib: int | None
    gpus: int | None
    cpu: list[float]  # cores that were busy
    mem_used: list[float]  # bytes
    gpu: list[float]  # GPUs that were busy: two at 50 % are 1
    cpus_held: list[float]  # cores that these jobs are guaranteed
    gpus_held: list[int]  # GPUs that these jobs have


class PoolUsage(TypedDict):
    """What jobs have used on each host over the last hours."""

    since: str  # RFC 3339
    until: str
    step: int  # seconds that one value is the mean of
    time: list[int]  # seconds since 1970: the beginning of each step
    hosts: list[HostUsage]
    left_out: int  # jobs that are not counted, because there are too many


class PoolFinding(TypedDict):
    """One thing that `pool check` examined."""

    host: str  # its name; empty: pool.yml itself
    # `file`, `connection`, `version`, `clock`, `images`, `gpus`, `swarm`, `encryption`, `isolation`, `data` or `output`
    topic: str
    outcome: Literal["ok", "note", "failed"]  # note: no failure, but worth knowing
    message: str


class PoolFindings(TypedDict):
    """Everything that `pool check` found."""

    findings: list[PoolFinding]


class PoolMember(TypedDict):
    """What was done with one host for the pool's swarm."""

    host: str  # its name
    # created: it made the swarm; joined; member: it was one already; promoted: it manages the swarm now; demoted: it is
    # only a member now; recovered: it manages the swarm alone, until others answer; silent: it does not answer
    membership: Literal["created", "joined", "member", "promoted", "demoted", "recovered", "silent"]


class PoolMembers(TypedDict):
    """The hosts of the swarm."""

    members: list[PoolMember]


class PoolRecovery(TypedDict):
    """How the swarm of the pool gets a new majority of managers, and what that costs."""

    leader: str  # the host that manages the swarm alone at first
    keeps_swarm: bool  # false: no manager answers, so that the members that answer make a new swarm
    lost: list[str]  # hosts that do not answer
    breaks: list[str]  # IDs of running experiments across hosts, whose jobs lose their network
    done: bool  # false: only asked  # names: of the API
    members: list[PoolMember]  # what was done; empty: nothing


class HostKeyView(TypedDict):
    """A key that a host presents to ssh."""

    kind: str  # `ED25519`, `RSA`, ...
    fingerprint: str  # as `ssh-keygen -l` shows it
    pinned: Literal["yes", "no", "other"]  # no: no key of this kind is pinned; other: a different one is


class HostKeys(TypedDict):
    """The keys that a host presents to ssh."""

    host: str  # its name
    known_hosts: str  # the server's file of pinned keys for it
    keys: list[HostKeyView]


class MeasureView(TypedDict):
    """One value that `system test` measured."""

    name: (
        str  # `cores` (SHA-256 on each), `memory`, `disk write`, `output read`, `product`, `all-reduce`, `stress`, ...
    )
    value: float
    unit: Literal["MB/s", "GFLOP/s", "GB/s", "us", "cores", "MiB"]
    gpu: str  # UUID; empty: it is not of one GPU


class TestedGpuView(TypedDict):
    """One GPU that `system test` has tested."""

    index: int  # in its job
    uuid: str
    model: str
    driver: str  # its version; empty: the driver did not tell it
    mem_mib: int  # that was written and read
    watts: float | None  # under load; None: the driver did not tell it
    celsius: int | None  # under load; None: the driver did not tell it
    errors: list[str]  # what is wrong; empty: nothing


class HostFinding(TypedDict):
    """What `system test` found on one host."""

    host: str  # its name
    outcome: Literal["ok", "slow", "failed"]  # slow: a value is worse than half of what the peers of the host reach
    id: str | None  # ID of its experiment; None: it could not start
    message: str
    measures: list[MeasureView]
    gpus: list[TestedGpuView]


class LinkFinding(TypedDict):
    """What `system test` found on the network between two hosts."""

    hosts: list[str]  # both names
    outcome: Literal["ok", "slow", "failed"]  # slow: a value is worse than half of what the other connections reach
    id: str | None  # ID of its experiment; None: it could not start
    message: str
    measures: list[MeasureView]


class HostFindings(TypedDict):
    """Everything that `system test` found."""

    findings: list[HostFinding]
    links: list[LinkFinding]  # the network between each pair of hosts; empty with one host, or without Docker
