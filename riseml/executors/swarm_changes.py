"""What a change of a pool's Docker Swarm did, or would do, with each host. Values only."""

from __future__ import annotations

import enum

from riseml.base.names import HostName
from riseml.base.records import dataclass


class Membership(enum.Enum):
    """What was done with a host for its swarm."""

    CREATED = "created"
    JOINED = "joined"
    MEMBER = "member"  # nothing to do: the host is in the swarm already
    PROMOTED = "promoted"  # a member manages the swarm now
    DEMOTED = "demoted"  # a manager is only a member now
    RECOVERED = "recovered"  # it manages the swarm alone, until others answer
    SILENT = "silent"  # nothing: the host does not answer


class Departure(enum.Enum):
    """What happened to a host's place in the swarm when it left the pool."""

    NONE = "none"  # it was in no swarm with the others
    LEFT = "left"  # the host has left the swarm
    REMOVED = "removed"  # the swarm has forgotten it; the host does not answer, and does not know
    SHARED = "shared"  # it stays: jobs or builds of another riseml server run there
    SERVICES = "services"  # it stays: the swarm runs services, which riseml never makes


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a swarm whose managers are too few gets a new majority."""

    leader: HostName  # the host that manages the swarm alone at first
    keeps_swarm: bool  # False: no manager lives, so that the members that live make a new swarm
    members: tuple[HostName, ...]  # the hosts that answer and are in the swarm
    lost: tuple[HostName, ...]  # the hosts that do not answer
