"""The room that is kept for the head of the queue.

A run may end at any moment, so that the head may start at any moment: `max_duration` bounds a run from above only, and
nothing that starts behind the head is sure to have ended before. So a gang behind the head may only take what the head
has no use for, whichever of the jobs that run now end first, and in whichever order. For one host that is exact: of all
the ways in which its room can grow and of all that the head could put on it then, the least that is left over. Taking
no more than that from any host leaves the head every place that it would have had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product

from riseml.control.placement.fit import Gang
from riseml.control.placement.ledger import SLACK, Free, Site
from riseml.model import Capacity, Job
from riseml.names import HostName
from riseml.spec.config.types import Resources

_MOST_PAIRS = 200
"""Ways to grow times uses of the head: above it, the largest use is taken for all of them, which keeps more."""

Amount = tuple[float, int, int]
"""Cores, MiB, GPUs."""

_NOTHING: Amount = (0.0, 0, 0)


class Reserve:
    """What one head leaves of each host.

    Args:
        head: what it needs.
        sites: the hosts that may get something new.
        capacities: what those hosts hold in all.
        held: the jobs that hold room now, by host.
    """

    def __init__(
        self,
        head: Gang,
        sites: Mapping[HostName, Site],
        capacities: Mapping[HostName, Capacity],
        held: Mapping[HostName, Iterable[Job]],
    ) -> None:
        self._head = head
        self._sites = sites
        self._capacities = capacities
        self._held = held
        self._known: dict[object, Amount] = {}

    def spare(self, name: HostName, free: Free) -> Free:
        """The part of what is free on a host that the head has no use for."""
        cpus, mem, gpus = self._spare(name, free)
        return Free(min(cpus, free.cpus), min(mem, free.mem), free.gpus[: max(0, gpus)])

    def _spare(self, name: HostName, free: Free) -> Amount:
        now = (free.cpus, free.mem, len(free.gpus))
        site, capacity = self._sites[name], self._capacities[name]
        parts = Counter(_amount(job.resources) for job in self._held.get(name, ()))
        usable = tuple(site.suits(kind.need.labels) for kind in self._head.kinds)
        key = (
            now,
            capacity.cpus,
            capacity.mem,
            len(capacity.gpus),
            usable,
            site.link is None,
            frozenset(parts.items()),
        )
        if key not in self._known:
            uses = self._uses(capacity, usable, alone=site.link is None)
            whole = _amount(self._head.whole)
            self._known[key] = _beyond(now, whole) if uses is None else _least(now, parts, uses)
        return self._known[key]

    def _uses(self, capacity: Capacity, usable: tuple[bool, ...], *, alone: bool) -> list[Amount] | None:
        """What the head could ever put on a host; None when that is too much to tell. Where hosts are not linked it is
        everything or nothing.
        """
        most = (capacity.cpus, capacity.mem, len(capacity.gpus))
        if alone or self._head.size == 1:
            whole = _amount(self._head.whole)
            return [whole] if all(usable) and self._head.possible and _holds(most, whole) else []
        counts = [len(kind.places) if fits else 0 for kind, fits in zip(self._head.kinds, usable, strict=True)]
        if _ways(counts) > _MOST_PAIRS:
            return None
        found: list[Amount] = []
        for shares in product(*(range(count + 1) for count in counts)):
            use = _NOTHING
            for kind, count in zip(self._head.kinds, shares, strict=True):
                use = _plus(use, _amount(kind.need), count)
            if any(shares) and _holds(most, use):
                found.append(use)
        return found


def _least(now: Amount, parts: Mapping[Amount, int], uses: list[Amount]) -> Amount:
    """The least that is left of a host in each respect, over all that may end on it and all uses that fit then."""
    if not uses:
        return now
    if _ways(parts.values()) * len(uses) > _MOST_PAIRS:
        return _beyond(now, (max(use[0] for use in uses), max(use[1] for use in uses), max(use[2] for use in uses)))
    cpus, mem, gpus = now
    kinds = list(parts.items())
    for ended in product(*(range(count + 1) for _, count in kinds)):
        grown = now
        for (part, _), count in zip(kinds, ended, strict=True):
            grown = _plus(grown, part, count)
        for use in uses:
            if _holds(grown, use):
                cpus = min(cpus, grown[0] - use[0])
                mem = min(mem, grown[1] - use[1])
                gpus = min(gpus, grown[2] - use[2])
    return max(0.0, cpus), max(0, mem), max(0, gpus)


def _beyond(now: Amount, use: Amount) -> Amount:
    """What is left when as much is used at once: never more than what `_least` would find."""
    return max(0.0, now[0] - use[0]), max(0, now[1] - use[1]), max(0, now[2] - use[2])


def _ways(counts: Iterable[int]) -> int:
    ways = 1
    for count in counts:
        ways *= count + 1
    return ways


def _amount(need: Resources) -> Amount:
    return need.cpus, need.mem, need.gpus


def _plus(left: Amount, right: Amount, times: int) -> Amount:
    return left[0] + right[0] * times, left[1] + right[1] * times, left[2] + right[2] * times


def _holds(room: Amount, use: Amount) -> bool:
    return use[0] <= room[0] + SLACK and use[1] <= room[1] and use[2] <= room[2]
