"""Hosts for a gang: all of its jobs or none, on one host if there is one, on few otherwise.

CPU-only gangs go to hosts without GPUs while one has room; a CPU-only ps goes beside GPU workers while there is room
beside them. The same room gives the same hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from riseml.control.placement.ledger import SLACK, Free, Room, Site
from riseml.names import HostName
from riseml.spec.config.types import Resources

_ANY_NUMBER = 1_000_000
_MOST_TRIES = 2000
"""Steps of the exact search after the quick one found nothing; only gangs that barely fit need them."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """Jobs of a gang that need the same. `places` are their positions in the gang."""

    need: Resources
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gang:
    """What a gang needs: by kind, the hungriest first, and as a whole on one host."""

    kinds: tuple[JobKind, ...]
    whole: Resources
    size: int
    possible: bool  # False: its jobs want different values of one label, so that no single host has them all

    def starved(self, room: Room) -> bool:
        """True when not even the largest host holds each kind of job (a quick look)."""
        return not all(any(free.holds(kind.need) for free in room.values()) for kind in self.kinds)


def make_gang(needs: Sequence[Resources]) -> Gang:
    """The needs of the jobs in their order."""
    found: dict[Resources, list[int]] = {}
    for place, need in enumerate(needs):
        found.setdefault(need, []).append(place)
    order = sorted(found, key=lambda need: (-need.gpus, -need.mem, -need.cpus, need.labels))
    labels = {label for need in found for label in need.labels}
    whole = Resources(
        sum(need.cpus * len(places) for need, places in found.items()),
        sum(need.mem * len(places) for need, places in found.items()),
        sum(need.gpus * len(places) for need, places in found.items()),
        tuple(sorted(labels)),
    )
    kinds = tuple(JobKind(need, tuple(found[need])) for need in order)
    return Gang(kinds, whole, len(needs), len({name for name, _ in labels}) == len(labels))


def fit(gang: Gang, room: Room, sites: Mapping[HostName, Site]) -> tuple[HostName, ...] | None:
    """A host for every job, in the jobs' order; None when there is none for all of them."""
    one = _find_one(gang, room, sites)
    if one is not None:
        return (one,) * gang.size
    if gang.size == 1:
        return None
    links = sorted({site.link for name, site in sites.items() if site.link is not None and name in room})
    found = [spread for link in links if (spread := _spread_over(gang, room, sites, link)) is not None]
    return min(found, key=lambda hosts: len(set(hosts)), default=None)


def _find_one(gang: Gang, room: Room, sites: Mapping[HostName, Site]) -> HostName | None:
    """The tightest host that holds the whole gang; one without GPUs for a gang that needs none."""
    if not gang.possible:
        return None
    need = gang.whole
    cpus, mem, gpus = need.cpus - SLACK, need.mem, need.gpus
    best: tuple[int, int, float, int, HostName] | None = None
    for name, site in sites.items():
        free = room.get(name)
        if free is None or free.cpus < cpus or free.mem < mem or len(free.gpus) < gpus or not site.suits(need.labels):
            continue
        rank = (site.gpus if gpus == 0 else 0, len(free.gpus), free.cpus, free.mem, name)
        if best is None or rank < best:
            best = rank
    return None if best is None else best[-1]


def _spread_over(gang: Gang, room: Room, sites: Mapping[HostName, Site], link: str) -> tuple[HostName, ...] | None:
    """The gang over several hosts of one link."""
    hosts = _distinct(gang, room, {name: site for name, site in sites.items() if site.link == link and name in room})
    for kind in gang.kinds:  # the hungriest first: mostly that is the end of it
        able = [room[name] for name, site in hosts.items() if site.suits(kind.need.labels)]
        if sum(count_fits(kind.need, free) for free in able) < len(kind.places):
            return None
    counts = {name: fits for name, site in hosts.items() if any(fits := _most(gang, room[name], site))}
    if not _may_fit(gang, room, counts):
        return None
    plain = [name for name in counts if hosts[name].gpus == 0]
    choices = [plain, list(counts)] if gang.whole.gpus == 0 and len(plain) < len(counts) else [list(counts)]
    for names in choices:
        shares = _greedy(gang, {name: room[name] for name in names}, hosts)
        if shares is not None:
            return _assign(gang, shares)
    exact = _Search(gang, room, hosts).solve(sorted(counts, key=lambda name: (-sum(counts[name]), name)))
    return None if exact is None else _assign(gang, exact)


Shares = dict[HostName, tuple[int, ...]]
"""How many jobs of each kind a host gets."""


def _most(gang: Gang, free: Free, site: Site) -> tuple[int, ...]:
    """How many jobs of each kind alone a host could hold."""
    return tuple(
        _count(kind.need, free, len(kind.places)) if site.suits(kind.need.labels) else 0 for kind in gang.kinds
    )


def _distinct(gang: Gang, room: Room, sites: Mapping[HostName, Site]) -> dict[HostName, Site]:
    """Of hosts that are alike no more than the gang has jobs, and none that holds none of them."""
    alike: dict[object, int] = {}
    found: dict[HostName, Site] = {}
    for name, site in sites.items():
        free = room[name]
        key = (free.cpus, free.mem, len(free.gpus), site.gpus, *site.labels.items())
        alike[key] = count = alike.get(key, 0) + 1
        if count <= gang.size and any(free.holds(kind.need) for kind in gang.kinds):
            found[name] = site
    return found


def count_fits(need: Resources, free: Free) -> int:
    """How many jobs of one kind a host holds; more than any gang has where they need nothing."""
    if need.gpus > len(free.gpus) or need.mem > free.mem:
        return 0
    return _count(need, free, _ANY_NUMBER)


def _count(need: Resources, free: Free, most: int) -> int:
    if need.cpus > 0:
        most = min(most, int((free.cpus + SLACK) / need.cpus))
    if need.mem > 0:
        most = min(most, free.mem // need.mem)
    if need.gpus > 0:
        most = min(most, len(free.gpus) // need.gpus)
    return max(0, most) if free.cpus > -SLACK and free.mem >= 0 else 0


def _may_fit(gang: Gang, room: Room, counts: Mapping[HostName, tuple[int, ...]]) -> bool:
    """False when it is plain that these hosts together do not hold the gang."""
    return (
        sum(room[name].cpus for name in counts) + SLACK >= gang.whole.cpus
        and sum(room[name].mem for name in counts) >= gang.whole.mem
        and sum(len(room[name].gpus) for name in counts) >= gang.whole.gpus
    )


def _greedy(gang: Gang, room: Room, sites: Mapping[HostName, Site]) -> Shares | None:
    """Again and again the host that takes the most GPUs of what is left, then the most jobs; of equals the tightest."""
    left = [len(kind.places) for kind in gang.kinds]
    shares: Shares = {}
    names = sorted(room)
    while any(left):
        best: tuple[int, int, int, int, float, int] | None = None
        chosen: tuple[HostName, tuple[int, ...]] | None = None
        for name in names:
            if name in shares:
                continue
            filled = _fill(gang, left, room[name], sites[name])
            gpus = sum(kind.need.gpus * count for kind, count in zip(gang.kinds, filled, strict=True))
            free = room[name]
            waste = 0 if gpus else sites[name].gpus
            rank = (-gpus, -sum(filled), waste, len(free.gpus), free.cpus, free.mem)
            if any(filled) and (best is None or rank < best):
                best, chosen = rank, (name, filled)
        if chosen is None:
            return None
        shares[chosen[0]] = chosen[1]
        left = [count - taken for count, taken in zip(left, chosen[1], strict=True)]
    return shares


def _fill(gang: Gang, left: Sequence[int], free: Free, site: Site) -> tuple[int, ...]:
    """As many as fit, the hungriest kind first."""
    filled: list[int] = []
    for kind, most in zip(gang.kinds, left, strict=True):
        count = _count(kind.need, free, most) if most and site.suits(kind.need.labels) else 0
        filled.append(count)
        if count:
            free = _without(free, kind.need, count)
    return tuple(filled)


def _without(free: Free, need: Resources, count: int) -> Free:
    return Free(free.cpus - need.cpus * count, free.mem - need.mem * count, free.gpus[need.gpus * count :])


def _assign(gang: Gang, shares: Shares) -> tuple[HostName, ...]:
    """The places of each kind handed out in the order of the hosts."""
    found: dict[int, HostName] = {}
    for index, kind in enumerate(gang.kinds):
        hosts = [name for name, counts in shares.items() for _ in range(counts[index])]
        found.update(zip(kind.places, hosts, strict=True))
    return tuple(found[place] for place in range(gang.size))


class _Search:
    """All ways to share a gang out, host by host, until one is found or the tries are spent."""

    def __init__(self, gang: Gang, room: Room, sites: Mapping[HostName, Site]) -> None:
        self._gang = gang
        self._room = room
        self._sites = sites
        self._dead: set[tuple[int, tuple[int, ...]]] = set()
        self._tries = _MOST_TRIES

    def solve(self, names: Sequence[HostName]) -> Shares | None:
        return self._walk(names, 0, tuple(len(kind.places) for kind in self._gang.kinds))

    def _walk(self, names: Sequence[HostName], index: int, left: tuple[int, ...]) -> Shares | None:
        if not any(left):
            return {}
        if index == len(names) or (index, left) in self._dead or self._tries <= 0:
            return None
        self._tries -= 1
        name = names[index]
        for share in self._shares(left, self._room[name], self._sites[name], 0):
            rest = self._walk(names, index + 1, tuple(a - b for a, b in zip(left, share, strict=True)))
            if rest is not None:
                return {name: share, **rest} if any(share) else rest
        self._dead.add((index, left))
        return None

    def _shares(self, left: tuple[int, ...], free: Free, site: Site, kind: int) -> Iterator[tuple[int, ...]]:
        """What a host could take of what is left. Fewer than it could is never better for the last kind."""
        if kind == len(left):
            yield ()
            return
        need = self._gang.kinds[kind].need
        most = _count(need, free, left[kind]) if left[kind] and site.suits(need.labels) else 0
        least = most if kind == len(left) - 1 else 0
        for count in range(most, least - 1, -1):
            for rest in self._shares(left, _without(free, need, count), site, kind + 1):
                yield (count, *rest)
