"""What a host says of itself that has a queue of its own, such as a Slurm cluster. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeKind:
    """The nodes of one size."""

    count: int
    cpus: int  # cores of one node
    mem: int  # MiB of one node
    gpus: int  # of one node


@dataclass(frozen=True, slots=True)
class OwnQueue:
    """The queue of a host that takes whole gangs at once, and decides itself where and when each starts."""

    nodes: tuple[NodeKind, ...]  # the largest first
    trouble: str = ""  # why it takes nothing now; empty: it does
