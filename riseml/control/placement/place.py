"""Give places to waiting experiments, in the order of the queue: all jobs of a gang get their hosts, or none does.

The first experiment without room becomes the head: nothing that starts behind it may delay it. An experiment that no
host could hold now, even if nothing ran, is skipped: it waits for a host, not for room.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from riseml.control.actions import ReleaseHost
from riseml.control.observation import Observation
from riseml.control.placement.candidates import find_candidates, find_obstacles
from riseml.control.placement.connect import FreeAddresses, GangConnection
from riseml.control.placement.fit import Gang, make_gang
from riseml.control.placement.free import FreeByHost
from riseml.control.placement.hand_over import find_cluster, hand_over, list_clusters
from riseml.control.placement.queue import Needs, QueueHead, QueueProgress, make_queue
from riseml.control.placement.room import Room, could_hold_when_empty
from riseml.model import Experiment, Job, World
from riseml.names import HostName
from riseml.states import Reason, State


def place_gangs(world: World, seen: Observation, held: frozenset[int] = frozenset()) -> World:
    """Return the world in which every gang has its place that has its turn and fits.

    Args:
        world: every open experiment, oldest first.
        seen: what the pass saw.
        held: the ids of experiments that had a place when the pass began. They get no other place in this pass, because
            the end of one place and the begin of another are saved one after the other.
    """
    queue = make_queue(world.experiments)
    if not queue:
        return world
    changed = PlacementPass(world, seen).serve_queue(queue, held)
    return World(tuple(changed.get(experiment.id, experiment) for experiment in world.experiments))


class PlacementPass:
    """One pass over the queue. It composes three parts, which can be read at any moment:

    - `room`: what is free on the hosts, and what the head leaves of it;
    - `addresses`: the subnets and ports that are left;
    - `progress` and `head`: how far the queue was served, and the experiment that room is kept for.
    """

    def __init__(self, world: World, seen: Observation) -> None:
        self.seen = seen
        self.obstacles = find_obstacles({experiment.id: experiment for experiment in world.experiments}, seen)
        silent = [name for name, host in seen.hosts.items() if host.silent_since is not None]
        self.room = Room(find_candidates(seen, self.obstacles, silent), seen, world.experiments)
        self.addresses = FreeAddresses(world.experiments, seen)
        self.progress = QueueProgress(world.experiments)
        self.head: QueueHead | None = None
        self._gangs: dict[Needs, Gang] = {}
        self._clusters = list_clusters(seen, self.obstacles)

    def serve_queue(self, queue: Iterable[Experiment], held: frozenset[int] = frozenset()) -> dict[int, Experiment]:
        """Serve these experiments in their order; return those that got a place or another reason to wait, by id."""
        releasing = frozenset(action.experiment for action in self.seen.busy if isinstance(action, ReleaseHost))
        served: dict[int, Experiment] = {}
        for waiting in queue:
            if waiting.id in held or waiting.id in releasing:  # the hosts still clear its last place
                self._choose_head(waiting)
            elif not (self.progress.is_over and waiting.reason is Reason.NO_ROOM and waiting.set_id is None):
                served[waiting.id] = self._serve(waiting)
        return served

    def gang_of(self, experiment: Experiment) -> Gang:
        """Return what the jobs of an experiment need."""
        needs = _needs_of(experiment)
        if needs not in self._gangs:
            self._gangs[needs] = make_gang(needs)
        return self._gangs[needs]

    def could_ever_start(self, experiment: Experiment) -> bool:
        """Return True when the hosts that are there now could hold the experiment if nothing ran on them."""
        return could_hold_when_empty(self.gang_of(experiment), self.seen, self.obstacles)

    def _serve(self, waiting: Experiment) -> Experiment:
        """Return the experiment with its place, or with the reason why it has none."""
        if self.progress.sets.are_full_for(waiting):
            return _keep_waiting(waiting, Reason.CONCURRENCY)
        placed = self._place(waiting)
        if placed is not None:
            self.progress.sets.add(placed)
            return placed
        self._choose_head(waiting)
        is_head = self.head is not None and self.head.experiment is waiting
        return _keep_waiting(waiting, Reason.NEXT if is_head else Reason.NO_ROOM)

    def _place(self, waiting: Experiment) -> Experiment | None:
        cluster = find_cluster(waiting, self.seen, self._clusters) if self._clusters else None
        if cluster is not None:
            return hand_over(waiting, cluster, self.seen.now)
        needs = _needs_of(waiting)
        if not self.progress.may_try(needs, behind_head=self.head is not None):
            return None
        gang = self.gang_of(waiting)
        hosts = self.room.find_hosts(gang)
        if hosts is not None and self.head is not None:
            hosts = self.room.find_hosts_beside(self.head.reserve, gang)
        if hosts is None:
            self.progress.note_miss(needs)
            return None
        connection = self.addresses.connect(waiting, hosts)
        if connection is None:
            return None
        placed = give_place(waiting, hosts, connection, self.room.free, self.seen.now)
        self.room.take(placed.gang)
        if self.head is not None:
            self.head.reserve.spend(placed.gang)
        return placed

    def _choose_head(self, waiting: Experiment) -> None:
        """Keep room for an experiment without a place, if it is the first one that the pool could hold at all."""
        if self.head is not None or not self.could_ever_start(waiting):
            return
        gang = self.gang_of(waiting)
        self.head = QueueHead(waiting, self.room.reserve_for(gang))
        self.addresses.keep_subnet_for(gang.size)


def give_place(
    waiting: Experiment, hosts: tuple[HostName, ...], connection: GangConnection, free: FreeByHost, now: datetime
) -> Experiment:
    """Return the experiment with its gang on these hosts, which are in the order of its jobs."""
    given: dict[HostName, int] = {}  # how many devices of a host the gang has
    placed: dict[str, Job] = {}
    for index, (job, host) in enumerate(zip(waiting.gang, hosts, strict=True)):
        begin = given.get(host, 0)
        given[host] = begin + job.resources.gpus
        placed[job.name] = replace(
            job,
            state=State.STARTING,
            reason=Reason.PLACED,
            host=host,
            address=connection.addresses[index],
            port=connection.ports[index],
            gpus=free[host].gpus[begin : given[host]],
        )
    return replace(
        waiting,
        jobs=tuple(placed.get(job.name, job) for job in waiting.jobs),
        network=connection.network,
        network_host=connection.network_host,
        subnet=connection.subnet,
        placed_at=now,
        state=State.STARTING,
        reason=Reason.PLACED,
        message="",
    )


def _needs_of(experiment: Experiment) -> Needs:
    return tuple(job.resources for job in experiment.gang)


def _keep_waiting(experiment: Experiment, reason: Reason) -> Experiment:
    if experiment.state is State.PENDING and experiment.reason is reason:
        return experiment
    return replace(experiment, state=State.PENDING, reason=reason)
