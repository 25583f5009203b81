"""Find hosts for a gang: for all of its jobs or none, on one host if one holds them all, otherwise on few hosts.

A gang without GPUs goes to hosts without GPUs while these have room. A ps without GPUs goes beside workers with GPUs
while there is room beside them. The same free resources give the same hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.control.placement.candidates import CandidateHost
from riseml.control.placement.free import SLACK, FreeByHost, FreeResources
from riseml.control.placement.gpu_models import has_wanted_gpus, wants_models
from riseml.spec.config.types import Resources

_MOST_STEPS = 2000
"""Steps of the exact search, which follows when the quick search finds nothing; only gangs that barely fit need it."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """The jobs of a gang that need the same resources."""

    need: Resources  # what one job needs
    places: tuple[int, ...]  # positions of the jobs in the gang


@dataclass(frozen=True, slots=True)
class Gang:
    """The needs of the jobs that get their places together."""

    kinds: tuple[JobKind, ...]  # largest needs first: by GPUs, then memory, then cores
    whole: Resources  # what all jobs need together
    size: int  # number of jobs
    one_host_possible: bool  # False: the jobs want different values of one label
    wants_models: bool  # True: a job does not accept any GPU

    def exceeds_every_host(self, room: FreeByHost) -> bool:
        """Return True when some job fits on no host; a quick test before the search."""
        return not all(any(free.holds(kind.need) for free in room.values()) for kind in self.kinds)


def make_gang(needs: Sequence[Resources]) -> Gang:
    """Return the gang of jobs with these needs, which are in the order of the jobs."""
    places_of: dict[Resources, list[int]] = {}
    for place, need in enumerate(needs):
        places_of.setdefault(need, []).append(place)
    order = sorted(places_of, key=_rank_need)
    labels = {label for need in places_of for label in need.labels}
    whole = Resources(
        sum(need.cpus * len(places) for need, places in places_of.items()),
        sum(need.mem * len(places) for need, places in places_of.items()),
        sum(need.gpus * len(places) for need, places in places_of.items()),
        tuple(sorted(labels)),
    )
    kinds = tuple(JobKind(need, tuple(places_of[need])) for need in order)
    one_host_possible = len({name for name, _ in labels}) == len(labels)
    return Gang(kinds, whole, len(needs), one_host_possible, any(map(wants_models, places_of)))


def _rank_need(need: Resources) -> tuple[object, ...]:
    """Return the sort key that puts the largest needs first."""
    return -need.gpus, -need.mem, -need.cpus, need.labels, need.gpu, need.gpu_mem or 0


class HostRank(NamedTuple):
    """How well a host suits the jobs that it would get: of several hosts, the one with the smallest rank gets them."""

    used_gpus: int  # the GPUs that the jobs use, as a negative number: most first
    jobs: int  # the number of jobs, as a negative number: most first
    idle_gpus: int  # the GPUs of the host, if the jobs use none and would only be in the way there
    free_gpus: int
    free_cpus: float
    free_mem: int  # MiB; the host with the least free comes first, so that others stay free for large jobs
    name: HostName


def find_hosts(
    gang: Gang, room: FreeByHost, candidates: Mapping[HostName, CandidateHost]
) -> tuple[HostName, ...] | None:
    """Return a host for every job, in the order of the jobs; None when the gang does not fit.

    Args:
        gang: the jobs.
        room: what is free on the hosts; a candidate that is missing here gets no job.
        candidates: the hosts that may get jobs, in the order of their names.

    Example:
        Two workers need 4 cores and 1 GPU each, a ps 1 core. h1 has 8 cores and 1 GPU free, h2 5 cores and 1 GPU, h3 16
        cores. No host has both GPUs, so the jobs are spread, host by host. Each could take:

            h1: a worker and the ps, rank (-1 GPU, -2 jobs, 0, 1 GPU, 8 cores, ...)
            h2: a worker and the ps, rank (-1 GPU, -2 jobs, 0, 1 GPU, 5 cores, ...)
            h3: the ps,              rank (0 GPUs, -1 job,  0, 0 GPUs, 16 cores, ...)

        h2 has the smallest rank and gets a worker and the ps. The other worker fits on h1 alone. With the jobs in the
        order worker.1, worker.2, ps the answer is (h2, h1, h2). If h1 had 2 GPUs and 9 cores, it would get them all.
    """
    host = _find_single_host(gang, room, candidates)
    if host is not None:
        return (host,) * gang.size
    if gang.size == 1:
        return None
    links = sorted(
        {candidate.link for name, candidate in candidates.items() if candidate.link is not None and name in room}
    )
    spreads = [spread for link in links if (spread := _spread_over(gang, room, candidates, link)) is not None]
    return min(spreads, key=lambda hosts: len(set(hosts)), default=None)


def _find_single_host(gang: Gang, room: FreeByHost, candidates: Mapping[HostName, CandidateHost]) -> HostName | None:
    """Return the host with the least left over that holds the whole gang; for a gang without GPUs, hosts without GPUs
    first.
    """
    if not gang.one_host_possible:
        return None
    need = gang.whole
    cpus = need.cpus - SLACK
    mem = need.mem
    gpus = need.gpus
    best: HostRank | None = None
    for name, candidate in candidates.items():
        free = room.get(name)
        if (
            free is None
            or free.cpus < cpus
            or free.mem < mem
            or len(free.gpus) < gpus
            or (need.labels and not candidate.has_labels(need.labels))
            or (gang.wants_models and not all(has_wanted_gpus(candidate.models, kind.need) for kind in gang.kinds))
        ):
            continue
        # the fields of a HostRank; an object for each host would double the time of the search
        rank = (-gpus, -gang.size, 0 if gpus else candidate.gpus, len(free.gpus), free.cpus, free.mem, name)
        if best is None or rank < best:
            best = HostRank(*rank)
    return None if best is None else best.name


def _spread_over(
    gang: Gang, room: FreeByHost, candidates: Mapping[HostName, CandidateHost], link: str
) -> tuple[HostName, ...] | None:
    """Return hosts of one link that hold the gang together; None when there are none."""
    hosts = _drop_equal_hosts(
        gang,
        room,
        {name: candidate for name, candidate in candidates.items() if candidate.link == link and name in room},
    )
    if not _hold_each_kind(gang, room, hosts):
        return None
    counts = {
        name: fits for name, candidate in hosts.items() if any(fits := _count_each_kind(gang, room[name], candidate))
    }
    if not _may_hold(gang, room, counts):
        return None
    plain = [name for name in counts if hosts[name].gpus == 0]
    choices = [plain, list(counts)] if gang.whole.gpus == 0 and len(plain) < len(counts) else [list(counts)]
    for names in choices:
        shares = _share_greedily(gang, {name: room[name] for name in names}, hosts)
        if shares is not None:
            return _assign_hosts(gang, shares)
    exact = _ExactSearch(gang, room, hosts).find_shares(sorted(counts, key=lambda name: (-sum(counts[name]), name)))
    return None if exact is None else _assign_hosts(gang, exact)


Shares = dict[HostName, tuple[int, ...]]
"""How many jobs of each kind every host gets, in the order of `Gang.kinds`."""


def _hold_each_kind(gang: Gang, room: FreeByHost, hosts: Mapping[HostName, CandidateHost]) -> bool:
    """Return False when the jobs of some kind alone do not fit on these hosts."""
    for kind in gang.kinds:  # the jobs that need most come first and mostly decide
        able = [room[name] for name, candidate in hosts.items() if candidate.accepts(kind.need)]
        if sum(free.count_fits(kind.need) for free in able) < len(kind.places):
            return False
    return True


def _count_each_kind(gang: Gang, free: FreeResources, candidate: CandidateHost) -> tuple[int, ...]:
    """Return how many jobs of each kind a host could hold, if it got only that kind."""
    return tuple(
        free.count_fits(kind.need, len(kind.places)) if candidate.accepts(kind.need) else 0 for kind in gang.kinds
    )


def _drop_equal_hosts(
    gang: Gang, room: FreeByHost, candidates: Mapping[HostName, CandidateHost]
) -> dict[HostName, CandidateHost]:
    """Return the hosts without those that hold no job, and of equal hosts no more than the gang has jobs."""
    alike: dict[object, int] = {}
    different: dict[HostName, CandidateHost] = {}
    for name, candidate in candidates.items():
        free = room[name]
        key = (free.cpus, free.mem, len(free.gpus), candidate.gpus, candidate.models, *candidate.labels.items())
        alike[key] = count = alike.get(key, 0) + 1
        if count <= gang.size and any(free.holds(kind.need) for kind in gang.kinds):
            different[name] = candidate
    return different


def _may_hold(gang: Gang, room: FreeByHost, counts: Mapping[HostName, tuple[int, ...]]) -> bool:
    """Return False when these hosts have less free in all than the gang needs."""
    return (
        sum(room[name].cpus for name in counts) + SLACK >= gang.whole.cpus
        and sum(room[name].mem for name in counts) >= gang.whole.mem
        and sum(len(room[name].gpus) for name in counts) >= gang.whole.gpus
    )


def _share_greedily(gang: Gang, room: FreeByHost, candidates: Mapping[HostName, CandidateHost]) -> Shares | None:
    """Return shares found host by host: each time, choose the host that takes the most GPUs of the remaining jobs, then
    the most jobs, then the host with the least free. Return None when some jobs get no host.
    """
    left = [len(kind.places) for kind in gang.kinds]
    shares: Shares = {}
    names = sorted(room)
    while any(left):
        fills = {name: _fill_host(gang, left, room[name], candidates[name]) for name in names if name not in shares}
        ranks = [
            _rank_fill(gang, fill, room[name], candidates[name], name) for name, fill in fills.items() if any(fill)
        ]
        if not ranks:
            return None
        chosen = min(ranks).name
        shares[chosen] = fills[chosen]
        left = [count - share for count, share in zip(left, fills[chosen], strict=True)]
    return shares


def _rank_fill(
    gang: Gang, fill: tuple[int, ...], free: FreeResources, candidate: CandidateHost, name: HostName
) -> HostRank:
    """Return the rank of a host that takes these jobs, which are counted by kind."""
    gpus = sum(kind.need.gpus * count for kind, count in zip(gang.kinds, fill, strict=True))
    idle = 0 if gpus else candidate.gpus
    return HostRank(-gpus, -sum(fill), idle, len(free.gpus), free.cpus, free.mem, name)


def _fill_host(gang: Gang, left: Sequence[int], free: FreeResources, candidate: CandidateHost) -> tuple[int, ...]:
    """Return how many of the remaining jobs fit on a host, by kind, largest needs first."""
    filled: list[int] = []
    for kind, most in zip(gang.kinds, left, strict=True):
        count = free.count_fits(kind.need, most) if most and candidate.accepts(kind.need) else 0
        filled.append(count)
        if count and kind is not gang.kinds[-1]:
            free = free.without(kind.need, count)
    return tuple(filled)


def _assign_hosts(gang: Gang, shares: Shares) -> tuple[HostName, ...]:
    """Return a host for every job, in the order of the jobs."""
    host_of: dict[int, HostName] = {}
    for index, kind in enumerate(gang.kinds):
        hosts = [name for name, counts in shares.items() for _ in range(counts[index])]
        host_of.update(zip(kind.places, hosts, strict=True))
    return tuple(host_of[place] for place in range(gang.size))


class _ExactSearch:
    """Try all ways to divide a gang among hosts, until one is found or the steps are used up."""

    def __init__(self, gang: Gang, room: FreeByHost, candidates: Mapping[HostName, CandidateHost]) -> None:
        self._gang = gang
        self._room = room
        self._candidates = candidates
        self._failed: set[tuple[int, tuple[int, ...]]] = set()
        self._steps_left = _MOST_STEPS

    def find_shares(self, names: Sequence[HostName]) -> Shares | None:
        return self._search_from(names, 0, tuple(len(kind.places) for kind in self._gang.kinds))

    def _search_from(self, names: Sequence[HostName], index: int, left: tuple[int, ...]) -> Shares | None:
        if not any(left):
            return {}
        if index == len(names) or (index, left) in self._failed or self._steps_left <= 0:
            return None
        self._steps_left -= 1
        name = names[index]
        for share in self._host_shares(left, self._room[name], self._candidates[name], 0):
            shares = self._search_from(names, index + 1, tuple(a - b for a, b in zip(left, share, strict=True)))
            if shares is not None:
                return {name: share, **shares} if any(share) else shares
        self._failed.add((index, left))
        return None

    def _host_shares(
        self, left: tuple[int, ...], free: FreeResources, candidate: CandidateHost, kind: int
    ) -> Iterator[tuple[int, ...]]:
        """Yield the shares of the remaining jobs that a host could take. Of the last kind it takes as many as fit,
        since fewer is never better.
        """
        if kind == len(left):
            yield ()
            return
        need = self._gang.kinds[kind].need
        most = free.count_fits(need, left[kind]) if left[kind] and candidate.accepts(need) else 0
        least = most if kind == len(left) - 1 else 0
        for count in range(most, least - 1, -1):
            for shares in self._host_shares(left, free.without(need, count), candidate, kind + 1):
                yield (count, *shares)
