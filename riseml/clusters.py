"""The capacity and state of a host that has its own queue, such as a Slurm cluster. Standard library only."""

from __future__ import annotations

from riseml.records import dataclass


@dataclass(frozen=True, slots=True)
class NodeKind:
    """The nodes of one size."""

    count: int
    cpus: int  # cores of one node
    mem: int  # MiB of one node
    gpus: int  # of one node


@dataclass(frozen=True, slots=True)
class OwnQueue:
    """The queue of a host that takes whole gangs, and decides where and when each gang starts."""

    nodes: tuple[NodeKind, ...]  # the largest first
    trouble: str = ""  # why the queue takes no gang now; empty: it takes gangs
