"""Which hosts are in the same Docker Swarm, by the managers that they know. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from riseml.base.names import HostName


def find_swarms(managers: Mapping[HostName, frozenset[str]]) -> dict[HostName, str]:
    """Return an id of the swarm of each host; empty: it is in none.

    A member learns within seconds who manages its swarm now, and until then it knows managers that have gone. So hosts
    that know a manager in common are in one swarm, whose id is the smallest id of all the managers that they know.

    Args:
        managers: the ids of the managers that each host knows; empty: it is in no swarm.
    """
    swarms: list[set[str]] = []
    for ids in managers.values():
        joined = set(ids)
        for swarm in [swarm for swarm in swarms if swarm & joined]:
            joined |= swarm
            swarms.remove(swarm)
        if joined:
            swarms.append(joined)
    return {name: min((min(swarm) for swarm in swarms if swarm & ids), default="") for name, ids in managers.items()}
