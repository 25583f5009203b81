"""Reserve room for the head of the queue, and compute what is left for the gangs after it.

A run may end at any moment, so the head may start at any moment: `max_duration` is only an upper bound, so no gang that
starts behind the head is sure to end before the head can start. Therefore a gang behind the head may only take what the
head cannot use, in whichever order the running jobs end. For one host this is exact: over all ways in which its free
resources can grow, and over all that the head could put on the host then, take the least that is left over. As long as
gangs behind the head take no more than that from any host, the head keeps every place that it could get.

It needs only one of these places. So a gang may also take more, if the head starts as early without it in every order
of ends (`OrderOfEnds`): of three free hosts a head that needs one more keeps one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from riseml.base.names import HostName
from riseml.control.placement.candidates import CandidateHost
from riseml.control.placement.fit import Gang, find_hosts
from riseml.control.placement.free import SLACK, FreeByHost, FreeResources
from riseml.model import Capacity, Job
from riseml.spec.config.types import Resources

_MOST_PAIRS = 200
"""Pairs of a way to grow and a use by the head. Above it, the largest use replaces all others, which keeps more."""

_MOST_FITS = 2000
"""Hosts times orders of ends that one question may look at. Above it, the head keeps every place that it could get."""

_MOST_QUESTIONS = 20  # in one pass

Amount = tuple[float, int, int]
"""Cores, MiB, GPUs."""

_NOTHING: Amount = (0.0, 0, 0)


class OrderOfEnds:
    """All ways in which running jobs may end before the head starts, and whether the head starts then.

    Args:
        head: the gang of the head.
        candidates: the hosts that it may get.
        jobs: those that hold resources, by host.
        free: what is free on the hosts now.
    """

    def __init__(
        self,
        head: Gang,
        candidates: Mapping[HostName, CandidateHost],
        jobs: Mapping[HostName, Iterable[Job]],
        free: FreeByHost,
    ) -> None:
        usable = {
            name: candidate
            for name, candidate in candidates.items()
            if any(candidate.accepts(kind.need) for kind in head.kinds)
        }
        self._head = head
        self._candidates = usable
        self._free = {name: free[name] for name in usable if name in free}
        self._parts = Counter((name, _amount(job.resources)) for name in self._free for job in jobs.get(name, ()))
        ways = _count_ways(self._parts.values()) * max(1, len(self._free))
        self.is_known = ways <= _MOST_FITS and self._fits(dict.fromkeys(self._parts, 0), {}) is False
        self._earliest = list(self._find_earliest()) if self.is_known else []
        self.is_known = self.is_known and bool(self._earliest)

    def start_as_early_without(self, needs: Mapping[HostName, Resources]) -> bool:
        """Return True when the head starts after the same ends if this much more is taken from the hosts.

        False also when there are too many orders to look at.
        """
        return self.is_known and all(self._fits(ended, needs) for ended in self._earliest)

    def _find_earliest(self) -> Iterator[Mapping[tuple[HostName, Amount], int]]:
        """Yield the fewest ends after which the head starts: with one end less it would not."""
        parts = list(self._parts.items())
        starts = {
            ended
            for ended in product(*(range(count + 1) for _, count in parts))
            if self._fits(dict(zip(self._parts, ended, strict=True)), {})
        }
        for ended in starts:
            fewer = ((*ended[:place], count - 1, *ended[place + 1 :]) for place, count in enumerate(ended) if count)
            if not any(start in starts for start in fewer):
                yield dict(zip(self._parts, ended, strict=True))

    def _fits(self, ended: Mapping[tuple[HostName, Amount], int], needs: Mapping[HostName, Resources]) -> bool:
        """Return True when the head fits after these ends, while this much more is taken."""
        grown = dict(self._free)
        for (name, (cpus, mem, gpus)), count in ended.items():
            free = grown[name]
            devices = (*free.gpus, *(f"{name} {number}" for number in range(gpus * count)))
            grown[name] = FreeResources(free.cpus + cpus * count, free.mem + mem * count, devices)
        for name, need in needs.items():
            if name in grown:
                grown[name] = grown[name].without(need)
        return find_hosts(self._head, grown, self._candidates) is not None


class Reserve:
    """What the head of the queue leaves free on each host: the surplus.

    Args:
        head: the gang of the head.
        candidates: the hosts that may get new jobs.
        capacities: what those hosts hold in all.
        jobs: those that hold resources, by host; a live view, which grows while gangs get their places.
        among: the hosts that have the data of the head; None: each.
        settled: no other host may become usable for the head: none is silent, drained or being cleared.
    """

    def __init__(
        self,
        head: Gang,
        candidates: Mapping[HostName, CandidateHost],
        capacities: Mapping[HostName, Capacity],
        jobs: Mapping[HostName, Iterable[Job]],
        among: frozenset[HostName] | None = None,
        *,
        settled: bool = False,
    ) -> None:
        self._among = among
        self._settled = settled
        self._orders: OrderOfEnds | None = None  # order of ends in the present room; None: not computed yet
        self._questions = 0
        self._head = head
        self._candidates = candidates
        self._capacities = capacities
        self._jobs = jobs
        self._surplus: dict[HostName, FreeResources] = {}
        self._amounts: dict[object, Amount] = {}

    def surplus(self, name: HostName, free: FreeResources) -> FreeResources:
        """Return what is left of a host's surplus, which `spend` makes smaller; `free` is what is free there now."""
        surplus = self._surplus.get(name)
        if surplus is None:
            self._surplus[name] = surplus = self.compute_surplus(name, free)
        return surplus

    def delays_nothing(self, needs: Mapping[HostName, Resources], free: FreeByHost) -> bool:
        """Return True when the head starts as early, whatever ends first, if this much is taken from what is free."""
        if not self._settled or self._questions >= _MOST_QUESTIONS:
            return False
        self._questions += 1
        if self._orders is None:
            hosts = {
                name: candidate
                for name, candidate in self._candidates.items()
                if self._among is None or name in self._among
            }
            self._orders = OrderOfEnds(self._head, hosts, self._jobs, free)
        return self._orders.start_as_early_without(needs)

    def spend(self, jobs: Iterable[Job]) -> None:
        """Subtract jobs after the head that got their place."""
        self._orders = None
        for job in jobs:
            if job.host in self._surplus:
                self._surplus[job.host] = self._surplus[job.host].without(job.resources)

    def compute_surplus(self, name: HostName, free: FreeResources) -> FreeResources:
        """Return the part of what is free on a host that the head cannot use; of the GPUs, only the number counts."""
        cpus, mem, gpus = self._compute_amount(name, free)
        return FreeResources(min(cpus, free.cpus), min(mem, free.mem), free.gpus[: max(0, gpus)])

    def _compute_amount(self, name: HostName, free: FreeResources) -> Amount:
        now = (free.cpus, free.mem, len(free.gpus))
        candidate = self._candidates[name]
        capacity = self._capacities[name]
        parts = Counter(_amount(job.resources) for job in self._jobs.get(name, ()))
        usable = tuple(candidate.accepts(kind.need) for kind in self._head.kinds)
        key = (  # hosts that are alike have the same answer
            now,
            capacity.cpus,
            capacity.mem,
            len(capacity.gpus),
            usable,
            candidate.link is None,
            frozenset(parts.items()),
        )
        if key not in self._amounts:
            uses = self._find_uses(capacity, usable, alone=candidate.link is None)
            whole = _amount(self._head.whole)
            self._amounts[key] = _subtract_at_once(now, whole) if uses is None else _least_left(now, parts, uses)
        return self._amounts[key]

    def _find_uses(self, capacity: Capacity, usable: tuple[bool, ...], *, alone: bool) -> list[Amount] | None:
        """Return every amount that the head could put on a host; None when there are too many ways.

        A host without a link gets all jobs of the head or none.
        """
        most = (capacity.cpus, capacity.mem, len(capacity.gpus))
        if alone or self._head.size == 1:
            whole = _amount(self._head.whole)
            return [whole] if all(usable) and self._head.one_host_possible and _holds(most, whole) else []
        counts = [len(kind.places) if fits else 0 for kind, fits in zip(self._head.kinds, usable, strict=True)]
        if _count_ways(counts) > _MOST_PAIRS:
            return None
        uses: list[Amount] = []
        for shares in product(*(range(count + 1) for count in counts)):
            use = _NOTHING
            for kind, count in zip(self._head.kinds, shares, strict=True):
                use = _add(use, _amount(kind.need), count)
            if any(shares) and _holds(most, use):
                uses.append(use)
        return uses


def _least_left(now: Amount, parts: Mapping[Amount, int], uses: list[Amount]) -> Amount:
    """Return the least that is left of a host in each respect, over all jobs that may end there and all uses that fit
    then.
    """
    if not uses:
        return now
    if _count_ways(parts.values()) * len(uses) > _MOST_PAIRS:
        largest = (max(use[0] for use in uses), max(use[1] for use in uses), max(use[2] for use in uses))
        return _subtract_at_once(now, largest)
    cpus, mem, gpus = now
    kinds = list(parts.items())
    for ended in product(*(range(count + 1) for _, count in kinds)):
        grown = now
        for (part, _), count in zip(kinds, ended, strict=True):
            grown = _add(grown, part, count)
        for use in uses:
            if _holds(grown, use):
                cpus = min(cpus, grown[0] - use[0])
                mem = min(mem, grown[1] - use[1])
                gpus = min(gpus, grown[2] - use[2])
    return max(0.0, cpus), max(0, mem), max(0, gpus)


def _subtract_at_once(now: Amount, use: Amount) -> Amount:
    """Return what is left when this much is used at once: never more than `_least_left` would return."""
    return max(0.0, now[0] - use[0]), max(0, now[1] - use[1]), max(0, now[2] - use[2])


def _count_ways(counts: Iterable[int]) -> int:
    ways = 1
    for count in counts:
        ways *= count + 1
    return ways


def _amount(need: Resources) -> Amount:
    return need.cpus, need.mem, need.gpus


def _add(left: Amount, right: Amount, times: int) -> Amount:
    return left[0] + right[0] * times, left[1] + right[1] * times, left[2] + right[2] * times


def _holds(room: Amount, use: Amount) -> bool:
    return use[0] <= room[0] + SLACK and use[1] <= room[1] and use[2] <= room[2]
