"""Who may start, and where: all jobs of a gang or none, in the order of the queue.

The first one that has no room is the head: nothing that starts behind it may delay it. One that no host could hold now,
even if nothing ran, is passed over: it waits for a host, and not for room.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from riseml.control.actions import PrepareHost, ReleaseHost
from riseml.control.explanation import Obstacle
from riseml.control.observation import Observation
from riseml.control.placement.addresses import Ports, Subnets, addresses_in, find_subnets, room_needed
from riseml.control.placement.fit import Gang, JobKind, count_fits, fit, make_gang
from riseml.control.placement.ledger import Free, Room, Site, find_sites, held_jobs, left_of, obstacles
from riseml.control.placement.queue import Sets, count_sets, make_queue
from riseml.control.placement.reserve import Reserve
from riseml.model import Experiment, Job, World
from riseml.names import HostName
from riseml.spec.config.types import Resources
from riseml.states import PLACED, Network, Reason, State

_LOOPBACK = "127.0.0.1"
_MOST_LOOKS = 2000
_MOST_MISSES = 100
"""How many gangs behind the head a pass looks at, and how many different ones it tries in vain; the rest waits."""


def place(world: World, seen: Observation, held: frozenset[int] = frozenset()) -> World:
    """Give a place to every gang that has its turn and fits.

    Those in `held` had a place when the pass began: giving one up and taking another are written down one after the
    other.
    """
    queue = make_queue(world.experiments)
    if not queue:
        return world
    desk = PlacementPass(world, seen)
    releasing = frozenset(action.experiment for action in seen.busy if isinstance(action, ReleaseHost))
    changed: dict[int, Experiment] = {}
    for waiting in queue:
        if waiting.id in held or waiting.id in releasing:  # its last place is being cleared first
            desk.keep_for(waiting)
        elif not (desk.is_closed and waiting.reason is Reason.NO_ROOM and waiting.set_id is None):
            changed[waiting.id] = desk.serve(waiting)
    return World(tuple(changed.get(experiment.id, experiment) for experiment in world.experiments))


class PlacementPass:
    """Hands out the room of one pass."""

    def __init__(self, world: World, seen: Observation) -> None:
        self._seen = seen
        self._experiments = world.experiments
        self.obstacles = obstacles({experiment.id: experiment for experiment in world.experiments}, seen)
        away = [name for name, host in seen.hosts.items() if host.silent_since is not None]
        self.sites = find_sites(seen, self.obstacles, away)
        self.held = held_jobs(world.experiments)
        self.room = {name: left_of(seen.hosts[name].capacity, self.held.get(name, ())) for name in self.sites}
        self.sets: Sets = count_sets(world.experiments)
        self.head: Experiment | None = None
        self._reserve: Reserve | None = None
        self._spare: dict[HostName, Free] = {}
        self._gangs: dict[tuple[Resources, ...], Gang] = {}
        self._looks = 0
        self._missed: set[tuple[Resources, ...]] = set()
        self.is_closed = False  # nobody else is looked at
        self._subnets: Subnets | None = None
        self._ports: Ports | None = None

    def serve(self, waiting: Experiment) -> Experiment:
        """The next one of the queue: with its place, or with the reason why it has none."""
        if self.sets.are_full_for(waiting):
            return _waiting(waiting, Reason.CONCURRENCY)
        placed = self._try(waiting)
        if placed is not None:
            self.sets.add(placed)
            return placed
        self.keep_for(waiting)
        return _waiting(waiting, Reason.NEXT if self.head is waiting else Reason.NO_ROOM)

    def keep_for(self, head: Experiment) -> None:
        """Keep room for one that cannot start, unless it is kept for another one already, or would be kept in vain."""
        if self.head is not None or not self.could_hold(head):
            return
        self.head = head
        gang = self.gang_of(head)
        capacities = {name: self._seen.hosts[name].capacity for name in self.sites}
        self._reserve = Reserve(gang, self.sites, capacities, self.held)
        if self._subnets is not None:
            self._keep_subnet(self._subnets, gang)

    def gang_of(self, experiment: Experiment) -> Gang:
        """What its jobs need."""
        return self._gang(_needs(experiment))

    def free_for(self, experiment: Experiment) -> Room:
        """What an experiment of the queue may take: all that is free, or what the head has no use for."""
        if self._reserve is None or experiment is self.head:
            return self.room
        kinds = self.gang_of(experiment).kinds
        spare = self._spare_for(self._reserve, kinds[:1])
        if sum(count_fits(kinds[0].need, free) for free in spare.values()) < len(kinds[0].places):
            return {}  # not even the hungriest of its jobs fit
        return spare if len(kinds) == 1 else self._spare_for(self._reserve, kinds)

    def _spare_for(self, reserve: Reserve, kinds: tuple[JobKind, ...]) -> dict[HostName, Free]:
        """What the head has no use for, of the hosts that have room for one of these jobs; the others do not matter."""
        found: dict[HostName, Free] = {}
        for name, free in self.room.items():
            if any(free.holds(kind.need) for kind in kinds):
                if name not in self._spare:
                    self._spare[name] = reserve.spare(name, free)
                found[name] = self._spare[name]
        return found

    def could_hold(self, experiment: Experiment) -> bool:
        """Whether the pool could hold the gang if nothing ran, and if every silent host that is not lost came back."""
        away = [name for name, why in self.obstacles.items() if why in (Obstacle.LOST, Obstacle.DRAINED)]
        lost = [name for name in away if self.obstacles[name] is Obstacle.LOST]
        return could_hold(self.gang_of(experiment), find_sites(self._seen, away, lost), self._seen)

    def subnets(self) -> Subnets:
        """What is left of the subnets, one for the head put aside."""
        if self._subnets is None:
            self._subnets = find_subnets(self._experiments, self._seen)
            if self.head is not None:
                self._keep_subnet(self._subnets, self.gang_of(self.head))
        return self._subnets

    def _keep_subnet(self, subnets: Subnets, gang: Gang) -> None:
        network = Network.BRIDGE if self._seen.network is Network.HOST else self._seen.network
        subnets.take(room_needed(network, gang.size))

    def ports(self) -> Ports:
        """What is left of the ports."""
        if self._ports is None:
            self._ports = Ports(self._experiments, self._seen.hosts)
        return self._ports

    def _gang(self, needs: tuple[Resources, ...]) -> Gang:
        if needs not in self._gangs:
            self._gangs[needs] = make_gang(needs)
        return self._gangs[needs]

    def _try(self, waiting: Experiment) -> Experiment | None:
        if self.head is not None:
            self._looks += 1
            self.is_closed = self._looks > _MOST_LOOKS or len(self._missed) > _MOST_MISSES
            if self.is_closed:
                return None
        needs = _needs(waiting)
        if needs in self._missed:
            return None
        gang = self._gang(needs)
        hosts = None if gang.starved(self.room) else fit(gang, self.room, self.sites)
        if hosts is not None and self._reserve is not None:
            hosts = fit(gang, self.free_for(waiting), self.sites)
        if hosts is None:
            self._missed.add(needs)
            return None
        placed = give_place(waiting, hosts, self)
        if placed is not None:
            self._take(placed)
        return placed

    def _take(self, placed: Experiment) -> None:
        for job in placed.gang:
            if job.host is None:
                continue
            free = self.room[job.host]
            self.room[job.host] = Free(
                free.cpus - job.resources.cpus,
                free.mem - job.resources.mem,
                tuple(gpu for gpu in free.gpus if gpu not in job.gpus),
            )
            self.held.setdefault(job.host, []).append(job)
            if job.host in self._spare:
                spare = self._spare[job.host]
                left = len(spare.gpus) - job.resources.gpus
                gpus = self.room[job.host].gpus[:left]
                self._spare[job.host] = Free(spare.cpus - job.resources.cpus, spare.mem - job.resources.mem, gpus)

    def look(self) -> Observation:
        """What this pass saw."""
        return self._seen


def could_hold(gang: Gang, sites: Mapping[HostName, Site], seen: Observation) -> bool:
    """Whether these hosts could hold the gang if nothing ran on them."""
    empty = {name: left_of(seen.hosts[name].capacity, ()) for name in sites}
    return fit(gang, empty, sites) is not None


@dataclass(frozen=True, slots=True)
class _Link:
    """How the jobs of one gang reach each other: in the order of the gang."""

    network: Network
    addresses: tuple[str, ...]
    ports: tuple[int | None, ...]
    subnet: str | None = None
    network_host: HostName | None = None


def give_place(waiting: Experiment, hosts: tuple[HostName, ...], desk: PlacementPass) -> Experiment | None:
    """The experiment on these hosts, in the order of its jobs; None without addresses or ports for them."""
    gang = waiting.gang
    link = _connect(waiting, hosts, desk)
    if link is None:
        return None
    given: dict[HostName, int] = {}
    placed: dict[str, Job] = {}
    for index, (job, host) in enumerate(zip(gang, hosts, strict=True)):
        begin = given.get(host, 0)
        given[host] = begin + job.resources.gpus
        placed[job.name] = replace(
            job,
            state=State.STARTING,
            reason=Reason.PLACED,
            host=host,
            address=link.addresses[index],
            port=link.ports[index],
            gpus=desk.room[host].gpus[begin : given[host]],
        )
    return replace(
        waiting,
        jobs=tuple(placed.get(job.name, job) for job in waiting.jobs),
        network=link.network,
        network_host=link.network_host,
        subnet=link.subnet,
        placed_at=desk.look().now,
        state=State.STARTING,
        reason=Reason.PLACED,
        message="",
    )


def _connect(waiting: Experiment, hosts: tuple[HostName, ...], desk: PlacementPass) -> _Link | None:
    seen = desk.look()
    several = len(set(hosts)) > 1
    first = seen.hosts[hosts[0]]
    if not first.isolated:
        ports = _take_ports(hosts, desk)
        return None if ports is None else _Link(Network.BRIDGE, (_LOOPBACK,) * len(hosts), ports)
    if seen.network is Network.HOST and (several or first.address):
        ports = _take_ports(hosts, desk)
        addresses = tuple(seen.hosts[host].address for host in hosts)
        return None if ports is None else _Link(Network.HOST, addresses, ports)
    network = Network.OVERLAY if several else Network.BRIDGE
    subnet = waiting.subnet if waiting.network is network else None
    subnet = subnet or desk.subnets().take(room_needed(network, len(hosts)))
    if subnet is None:
        return None
    attempt = max(job.attempt for job in waiting.gang)
    addresses = tuple(addresses_in(subnet, network, len(hosts), attempt))
    network_host = choose_network_host(seen, hosts) if several else None
    return _Link(network, addresses, (None,) * len(hosts), subnet, network_host)


def _take_ports(hosts: tuple[HostName, ...], desk: PlacementPass) -> tuple[int, ...] | None:
    taken = {host: desk.ports().take(host, hosts.count(host)) for host in sorted(set(hosts))}
    lists = {host: iter(ports) for host, ports in taken.items() if ports is not None}
    return tuple(next(lists[host]) for host in hosts) if len(lists) == len(taken) else None


def choose_network_host(seen: Observation, hosts: tuple[HostName, ...]) -> HostName | None:
    """The manager that makes the gang's network: the first one of the gang's own hosts, else of their swarm."""
    swarm = next((seen.hosts[host].swarm for host in hosts if host in seen.hosts), "")
    managers = [
        name
        for name, host in sorted(seen.hosts.items())
        if host.manager and host.swarm == swarm and host.silent_since is None
    ]
    return next((name for name in managers if name in hosts), managers[0] if swarm and managers else None)


def readdress(world: World, seen: Observation) -> World:
    """Give another subnet to every gang whose subnet is taken on a host, and another network host to every gang that
    lost its network host before the network existed.
    """
    asked = frozenset(
        (action.experiment, action.subnet)
        for action, problem in seen.problems.items()
        if isinstance(action, PrepareHost) and problem.subnet_taken
    )
    experiments = list(world.experiments)
    for index, experiment in enumerate(experiments):
        if experiment.placed_at is None or experiment.subnet is None:
            continue
        if (experiment.id, experiment.subnet) in asked and any(job.state in PLACED for job in experiment.gang):
            experiments[index] = _readdressed(experiment, tuple(experiments), seen)
        elif experiment.network_host is not None and _network_host_is_lost(experiment, seen):
            hosts = tuple(job.host for job in experiment.gang if job.host is not None)
            creator = choose_network_host(seen, hosts) or experiment.network_host
            experiments[index] = replace(experiment, network_host=creator)
    return World(tuple(experiments))


def _readdressed(experiment: Experiment, experiments: tuple[Experiment, ...], seen: Observation) -> Experiment:
    gang = experiment.gang
    subnet = find_subnets(experiments, seen).take(room_needed(experiment.network, len(gang)))
    if subnet is None:
        return experiment
    attempt = max(job.attempt for job in gang)
    addresses = addresses_in(subnet, experiment.network, len(gang), attempt)
    pairs = dict(zip((job.name for job in gang), addresses, strict=True))
    jobs = tuple(replace(job, address=pairs[job.name]) if job.name in pairs else job for job in experiment.jobs)
    return replace(experiment, subnet=subnet, jobs=jobs)


def _network_host_is_lost(experiment: Experiment, seen: Observation) -> bool:
    if not any(job.state is State.STARTING for job in experiment.gang):
        return False
    host = None if experiment.network_host is None else seen.hosts.get(experiment.network_host)
    if host is None:
        return True
    return seen.is_lost(host)


def _needs(experiment: Experiment) -> tuple[Resources, ...]:
    return tuple(job.resources for job in experiment.gang)


def _waiting(experiment: Experiment, reason: Reason) -> Experiment:
    if experiment.state is State.PENDING and experiment.reason is reason:
        return experiment
    return replace(experiment, state=State.PENDING, reason=reason)
