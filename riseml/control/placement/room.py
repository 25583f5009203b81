"""The free resources of one placement pass: for every gang, and for gangs after the head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from riseml.base.names import HostName
from riseml.control.observation import Observation
from riseml.control.placement.candidates import CandidateHost, HostExclusion, find_candidates
from riseml.control.placement.fit import Gang, JobKind, find_hosts
from riseml.control.placement.free import FreeByHost, FreeResources, find_held_jobs, free_after
from riseml.control.placement.leaders import list_leaderless
from riseml.control.placement.reserve import Reserve
from riseml.model import Experiment, Job
from riseml.spec.config.types import Resources

Among = frozenset[HostName] | None
"""The hosts that may be chosen; None: every candidate."""


class Room:
    """What is free on the candidate hosts. `take` is the only method that changes it.

    Example:
        room = Room(candidates, seen, world.experiments)
        room.find_hosts(gang)                      # anywhere
        reserve = room.reserve_for(head)           # changes nothing
        room.find_hosts_beside(reserve, gang)      # where the head has no use for it

    Args:
        candidates: the hosts that may get new jobs.
        observation: what the pass saw.
        experiments: every open experiment; the jobs that have a place hold what is not free.
    """

    def __init__(
        self, candidates: Mapping[HostName, CandidateHost], observation: Observation, experiments: Iterable[Experiment]
    ) -> None:
        self.candidates = candidates
        self._capacities = {name: observation.hosts[name].capacity for name in candidates}
        self._jobs = find_held_jobs(experiments)
        self._free = {
            name: free_after(capacity, self._jobs.get(name, ())) for name, capacity in self._capacities.items()
        }

    @property
    def free(self) -> FreeByHost:
        """What is free on each candidate host."""
        return self._free

    def find_hosts(self, gang: Gang, among: Among = None) -> tuple[HostName, ...] | None:
        """Return a host for every job of the gang, in the order of the jobs; None when the gang does not fit."""
        free = _choose(self._free, among)
        return None if gang.exceeds_every_host(free) else find_hosts(gang, free, self.candidates)

    def find_hosts_beside(self, reserve: Reserve, gang: Gang, among: Among = None) -> tuple[HostName, ...] | None:
        """Return a host for every job of a gang behind the head, so that the head is not delayed; None when there are
        none.
        """
        hosts = find_hosts(gang, _choose(self.free_beside(reserve, gang), among), self.candidates)
        return self._find_harmless_hosts(reserve, gang, among) if hosts is None else hosts

    def _find_harmless_hosts(self, reserve: Reserve, gang: Gang, among: Among) -> tuple[HostName, ...] | None:
        """Return hosts that the head could use and can do without: one for the whole gang if there is one."""
        free = _choose(self._free, among)
        left = dict(free)
        while left:
            hosts = find_hosts(gang, left, self.candidates)
            if hosts is None:
                return None
            needs: dict[HostName, Resources] = {}
            for kind in gang.kinds:
                for place in kind.places:
                    needs[hosts[place]] = _sum_needs(needs.get(hosts[place]), kind.need)
            if reserve.delays_nothing(needs, self._free):
                return hosts
            if len(needs) > 1:
                return None
            del left[hosts[0]]  # the next best host
        return None

    def find_hosts_when_empty(self, gang: Gang, among: Among) -> tuple[HostName, ...] | None:
        """Return a host for every job of the gang if nothing ran on the candidates; None when it does not fit."""
        empty = {name: free_after(capacity, ()) for name, capacity in self._capacities.items()}
        return find_hosts(gang, _choose(empty, among), self.candidates)

    def reserve_for(self, head: Gang, among: Among = None, *, settled: bool = False) -> Reserve:
        """Return what the head leaves for the gangs after it; see `Reserve`."""
        return Reserve(head, self.candidates, self._capacities, self._jobs, among, settled=settled)

    def free_beside(self, reserve: Reserve, gang: Gang) -> FreeByHost:
        """Return the free resources for a gang after the head, without the hosts that have too little for its largest
        jobs."""
        kinds = gang.kinds
        surplus = self._surplus_for(reserve, kinds[:1])
        if sum(free.count_fits(kinds[0].need) for free in surplus.values()) < len(kinds[0].places):
            return {}
        return surplus if len(kinds) == 1 else self._surplus_for(reserve, kinds)

    def take(self, jobs: Iterable[Job]) -> None:
        """Subtract jobs that got their place."""
        for job in jobs:
            if job.host is not None:
                self._free[job.host] = self._free[job.host].without_jobs((job,))
                self._jobs.setdefault(job.host, []).append(job)

    def _surplus_for(self, reserve: Reserve, kinds: tuple[JobKind, ...]) -> dict[HostName, FreeResources]:
        """Return the surplus of the hosts that hold one of these jobs; the other hosts do not matter."""
        return {
            name: reserve.surplus(name, free)
            for name, free in self._free.items()
            if any(free.holds(kind.need) for kind in kinds)
        }


def _sum_needs(left: Resources | None, right: Resources) -> Resources:
    if left is None:
        return Resources(right.cpus, right.mem, right.gpus)
    return Resources(left.cpus + right.cpus, left.mem + right.mem, left.gpus + right.gpus)


def _choose(free: FreeByHost, among: Among) -> FreeByHost:
    return free if among is None else {name: resources for name, resources in free.items() if name in among}


def awaits_leader(gang: Gang, observation: Observation, exclusions: Mapping[HostName, HostExclusion]) -> bool:
    """Return True when the pool could hold the gang if nothing ran and its swarm had a leader, and only then.

    Hosts that are lost count as there: that they do not answer is why there is no leader.
    """
    if gang.size == 1 or not list_leaderless(observation.hosts) or could_hold_when_empty(gang, observation, exclusions):
        return False
    drained = {name: why for name, why in exclusions.items() if why is HostExclusion.DRAINED}
    return _could_hold(gang, observation, drained, without=())


def could_hold_when_empty(gang: Gang, observation: Observation, exclusions: Mapping[HostName, HostExclusion]) -> bool:
    """Return True when the pool could hold the gang if nothing ran, and every silent host that is not lost came back.

    A gang for which this is False waits for a host, not for room.
    """
    lost = [name for name, why in exclusions.items() if why is HostExclusion.LOST]
    return _could_hold(gang, observation, exclusions, without=(*lost, *list_leaderless(observation.hosts)))


def _could_hold(
    gang: Gang, observation: Observation, exclusions: Mapping[HostName, HostExclusion], *, without: Iterable[HostName]
) -> bool:
    """Return True when the hosts that are neither lost nor drained could hold the gang if nothing ran.

    Args:
        gang, seen, exclusions: as in `could_hold_when_empty`.
        without: managers that connect no hosts.
    """
    excluded = [name for name, why in exclusions.items() if why in (HostExclusion.LOST, HostExclusion.DRAINED)]
    candidates = find_candidates(observation, excluded, without)
    empty = {name: free_after(observation.hosts[name].capacity, ()) for name in candidates}
    return find_hosts(gang, empty, candidates) is not None
