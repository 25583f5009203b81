"""What a client sends to add a host to the pool, and what adding and removing a host did."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from annotated_types import MaxLen
from typing_extensions import TypedDict

from riseml.wire.pool import HostKeys, PoolFinding, PoolMember

Text = Annotated[str, MaxLen(1000)]


class NewHost(TypedDict):
    """A host to add: its keys of pool.yml, and how to add it. Paths are absolute, on the machine of the server."""

    name: Text
    url: Text
    address: NotRequired[Text]
    gpus: NotRequired[Literal["all"] | Annotated[list[Text], MaxLen(1000)]]
    labels: NotRequired[Annotated[dict[Text, Text], MaxLen(100)]]
    cpus: NotRequired[float]
    mem: NotRequired[Text]
    identity: NotRequired[Text]
    tls: NotRequired[Text]  # a folder with ca.pem, cert.pem and key.pem
    insecure: NotRequired[bool]
    fingerprints: NotRequired[Annotated[list[Text], MaxLen(20)]]  # fingerprints of the host keys that the user trusts
    force: NotRequired[bool]  # add it although a check fails, or jobs run on hosts that are not in the new pool
    dry_run: NotRequired[bool]  # check everything, and change nothing


class AddedHost(TypedDict):
    """What `pool add` found, and did."""

    name: str
    # untrusted: nothing was asked of it, because the user has to compare its host key first; fit: nothing was changed
    state: Literal["untrusted", "fit", "added"]
    file: str  # the pool.yml
    entry: str  # its lines in pool.yml
    keys: HostKeys | None  # what it shows to ssh; null: it is not reached over ssh, or only through another host
    engine: str  # its engine and version; empty while it is untrusted
    cpus: float  # cores of the host
    mem_mib: int  # memory of the host
    gpus: int  # GPUs of the host
    findings: list[PoolFinding]  # findings of the checks
    members: list[PoolMember]  # what was done for the pool's swarm; empty: nothing, or there is no need of one


class RemovedHost(TypedDict):
    """What `pool remove` did, and what stays on the host."""

    name: str
    removed: bool  # false: only asked what would happen
    file: str  # the pool.yml
    jobs: list[str]  # IDs of the jobs that run there
    answers: bool  # it answered; else nothing is known of what stays there
    containers: int
    networks: int
    environments: int
    size: int  # bytes of its environments
    swarm: Literal["", "member", "manager"]  # its role in the swarm; empty: it is in no swarm
    # its place in the swarm of the pool. none: it had none; left: it left the swarm; removed: the swarm forgot it, and
    # it does not answer; shared: it stays, because another riseml server works there; services: it stays, because the
    # swarm runs services; kept: it stays, because the swarm could not be changed; empty: nothing was done yet
    departure: Literal["", "none", "left", "removed", "shared", "services", "kept"]
    output: str  # where outputs are on the host
    shared_output: bool  # other hosts of the pool have the same outputs
    known_hosts: str  # the file that keeps its pinned host key; empty: none
