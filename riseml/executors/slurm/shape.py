"""The shape in which a gang asks Slurm for nodes. Pure.

| shape      | when                                     | what Slurm allocates                              |
|------------|------------------------------------------|---------------------------------------------------|
| one node   | a node holds all roles together          | the sums, on one node                             |
| equal      | all roles need the same                  | one task for each role, on as many nodes as it is |
| components | roles differ, and there are nodes enough | a heterogeneous job, one component for each kind  |
| equal      | roles differ, and there are few nodes    | one task of the largest size for each role        |

Each component of a heterogeneous job needs nodes of its own; so three kinds of roles never start on two nodes.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.model import NodeKind
from riseml.spec.config.types import Resources


class ShapeKind(enum.Enum):
    """How a gang asks for its nodes."""

    ONE_NODE = "one node"
    EQUAL = "equal tasks, one for each role"
    COMPONENTS = "a heterogeneous job"


@dataclass(frozen=True, slots=True)
class RoleNeed:
    """What one role asks of Slurm: whole cores, as a step cannot have a part of one."""

    name: JobName
    cpus: int
    mem: int  # MiB
    gpus: int


@dataclass(frozen=True, slots=True)
class GangShape:
    """How a gang asks for its nodes, and in which component each role is."""

    kind: ShapeKind
    components: tuple[tuple[RoleNeed, ...], ...]  # one, except of a heterogeneous job

    def describe(self) -> str:
        """Return the shape in words: `a heterogeneous job of 2 components`."""
        count = f" of {len(self.components)} components" if self.kind is ShapeKind.COMPONENTS else ""
        return f"{self.kind.value}{count}"


def make_need(name: JobName, resources: Resources) -> RoleNeed:
    """Return what a role asks of Slurm."""
    return RoleNeed(name, max(1, math.ceil(resources.cpus)), max(1, resources.mem), resources.gpus)


def choose_shape(needs: Sequence[RoleNeed], nodes: Sequence[NodeKind]) -> GangShape:
    """Return the shape of a gang on a cluster with these nodes.

    Example:
        choose_shape([make_need(JobName("train"), Resources(2, 4096))], nodes).kind   # ShapeKind.ONE_NODE
    """
    roles = tuple(needs)
    whole = RoleNeed(JobName("all"), *(sum(column) for column in zip(*map(_amounts, roles), strict=True)))
    if len(roles) == 1 or any(_holds(node, whole) for node in nodes):
        return GangShape(ShapeKind.ONE_NODE, (roles,))
    kinds: dict[tuple[int, int, int], list[RoleNeed]] = {}
    for role in roles:
        kinds.setdefault(_amounts(role), []).append(role)
    if len(kinds) == 1 or len(kinds) > sum(node.count for node in nodes):
        return GangShape(ShapeKind.EQUAL, (roles,))
    return GangShape(ShapeKind.COMPONENTS, tuple(tuple(kind) for kind in kinds.values()))


def _amounts(need: RoleNeed) -> tuple[int, int, int]:
    return need.cpus, need.mem, need.gpus


def _holds(node: NodeKind, need: RoleNeed) -> bool:
    return need.cpus <= node.cpus and need.mem <= node.mem and need.gpus <= node.gpus
