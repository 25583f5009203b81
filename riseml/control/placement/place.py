"""Give places to waiting experiments, in the order of the queue: all jobs of a gang get their hosts, or none does.

The first experiment without room becomes the head: nothing that starts behind it may delay it. An experiment that no
host could hold now, even if nothing ran, is skipped: it waits for a host, not for room.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from riseml.base.names import HostName
from riseml.base.records import dataclass
from riseml.base.states import JobDuty, Reason, State
from riseml.control.actions import CopyData, ReleaseHost
from riseml.control.data_copies import find_copies_under_way, find_copy_problem
from riseml.control.observation import Observation
from riseml.control.placement.candidates import find_candidates, find_exclusions
from riseml.control.placement.connect import FreeAddresses, GangConnection
from riseml.control.placement.fit import Gang, make_gang
from riseml.control.placement.free import FreeByHost
from riseml.control.placement.hand_over import find_cluster, hand_over, list_clusters
from riseml.control.placement.leaders import describe_leaderless, list_leaderless
from riseml.control.placement.queue import Needs, QueueHead, QueueProgress, make_queue
from riseml.control.placement.room import Among, Room, awaits_leader, could_hold_when_empty
from riseml.control.quotas import QuotaLedger
from riseml.model import ActionFailure, Experiment, Job, World

YIELDS = "its priority is below 0, and an experiment of another user waits for room"
"""Why an experiment that borrows does not start."""

_GIVE_UP_COPYING = timedelta(minutes=5)
"""How long copies of data to a host may fail for temporary reasons, while nothing of it arrives, before no further one
is tried."""


def place_gangs(world: World, observation: Observation, placed_before: frozenset[int] = frozenset()) -> World:
    """Return the world in which every gang that fits, and whose turn it is, has its place; see `make_placements`."""
    return make_placements(world, observation, placed_before).world


@dataclass(frozen=True, slots=True)
class Placements:
    """What a pass over the queue decided."""

    world: World
    copies: tuple[CopyData, ...] = ()  # actions that copy data to hosts, so that the experiments can get a place there


def make_placements(world: World, observation: Observation, placed_before: frozenset[int] = frozenset()) -> Placements:
    """Return the world in which every gang has its place whose turn it is, that fits, and whose data a host has.

    Args:
        world: every open experiment, oldest first.
        observation: what the pass saw.
        placed_before: the ids of experiments that had a place when the pass began. They get no other place in this
            pass, because the store saves the end of one place before the beginning of another.
    """
    queue = make_queue(world.experiments, observation.team)
    if not queue:
        return Placements(world)
    placement = PlacementPass(world, observation)
    changed = placement.serve_queue(queue, placed_before)
    after = World(tuple(changed.get(experiment.id, experiment) for experiment in world.experiments))
    return Placements(after, tuple(placement.copies))


class PlacementPass:
    """One pass over the queue. It composes three parts, which can be read at any moment:

    - `room`: what is free on the hosts, and what the head leaves of it;
    - `addresses`: the subnets and ports that are left;
    - `progress` and `head`: how far the queue was served, and the experiment that room is kept for.
    """

    def __init__(self, world: World, observation: Observation) -> None:
        self.seen = observation
        self.exclusions = find_exclusions({experiment.id: experiment for experiment in world.experiments}, observation)
        silent = [name for name, host in observation.hosts.items() if host.silent_since is not None]
        without = [*silent, *list_leaderless(observation.hosts)]
        self.room = Room(find_candidates(observation, self.exclusions, without), observation, world.experiments)
        self.addresses = FreeAddresses(world.experiments, observation)
        self.progress = QueueProgress(world.experiments)
        self.quotas = None if observation.team is None else QuotaLedger(world.experiments, observation.team.quotas)
        self.head: QueueHead | None = None
        self.copies: list[CopyData] = []  # copies of data that experiments wait for
        self._gangs: dict[Needs, Gang] = {}
        self._possible: dict[Gang, bool] = {}  # whether the hosts could hold a gang if nothing ran on them
        self._clusters = list_clusters(observation, self.exclusions)

    def serve_queue(
        self, queue: Iterable[Experiment], placed_before: frozenset[int] = frozenset()
    ) -> dict[int, Experiment]:
        """Serve these experiments in their order; return by id those that got a place, or a new reason to wait."""
        releasing = frozenset(action.experiment for action in self.seen.busy if isinstance(action, ReleaseHost))
        served: dict[int, Experiment] = {}
        for waiting in queue:
            is_clearing = waiting.id in placed_before or waiting.id in releasing
            if is_clearing and not waiting.awaits_resume:  # its hosts still clear its last place
                if self.quotas is None or self.quotas.find_hold(waiting) is None:
                    self._choose_head(waiting)
            elif not (self.progress.is_over and waiting.reason is Reason.NO_ROOM and waiting.set_id is None):
                served[waiting.id] = self._serve(waiting)
        return served

    def gang_of(self, experiment: Experiment) -> Gang:
        """Return the gang of an experiment: the needs of its jobs."""
        needs = _needs_of(experiment)
        if needs not in self._gangs:
            self._gangs[needs] = make_gang(needs)
        return self._gangs[needs]

    def could_ever_start(self, experiment: Experiment) -> bool:
        """Return True when the hosts that are there now could hold the experiment if nothing ran on them."""
        gang = self.gang_of(experiment)
        if gang not in self._possible:
            self._possible[gang] = could_hold_when_empty(gang, self.seen, self.exclusions)
        return self._possible[gang]

    def awaits_leader(self, experiment: Experiment) -> bool:
        """Return True when the experiment needs several hosts, and only a leader of their swarm is missing for that."""
        return awaits_leader(self.gang_of(experiment), self.seen, self.exclusions)

    def _serve(self, waiting: Experiment) -> Experiment:
        """Return the experiment with its place, or with the reason why it has none."""
        if self.progress.sets.are_full_for(waiting):
            return _keep_waiting(waiting, Reason.PAUSED if waiting.awaits_resume else Reason.CONCURRENCY)
        kept_back = self._hold_for_quota(waiting)
        if kept_back is not None:
            return kept_back
        placed = self._place_gang(waiting)
        if placed is not None:
            self.progress.sets.add(placed)
            if self.quotas is not None:
                self.quotas.add(placed)
            return placed
        copies = self.find_copies(waiting)
        if copies:
            self.copies += copies
            return _keep_waiting(waiting, Reason.WAITING_FOR_DATA)
        problem = self._find_lasting_problem(waiting)
        if problem is not None:
            return _fail_for_data(waiting, problem)
        if self.awaits_leader(waiting):
            return _await_leader(waiting, self.seen)
        self._choose_head(waiting)
        is_head = self.head is not None and self.head.experiment is waiting
        # Otherwise, each pass without room would save a new reason for every experiment of a large set.
        awaits_others = self.progress.sets.note_unplaced(waiting)
        if self.quotas is not None:
            hold = self.quotas.note_unplaced(waiting, could_start=self.could_ever_start)
            if hold is not None and not is_head:
                return _keep_waiting(waiting, Reason.QUOTA, hold.describe_limit())
        behind = Reason.CONCURRENCY if awaits_others else Reason.NO_ROOM
        return _keep_waiting(waiting, Reason.NEXT if is_head else behind)

    def _hold_for_quota(self, waiting: Experiment) -> Experiment | None:
        """Return the experiment with the quota that holds it; None: no quota does."""
        if self.quotas is None:
            return None
        hold = self.quotas.find_hold(waiting)
        if hold is not None:
            return _keep_waiting(waiting, Reason.QUOTA, hold.describe_limit())
        if self.quotas.yields_to_others(waiting):
            return _keep_waiting(waiting, Reason.QUOTA, YIELDS)
        return None

    def _place_gang(self, waiting: Experiment) -> Experiment | None:
        cluster = find_cluster(waiting, self.seen, self._clusters) if self._clusters else None
        if cluster is not None:
            return hand_over(waiting, cluster, self.seen.now)
        needs = _needs_of(waiting)
        if not self.progress.may_try(needs, behind_head=self.head is not None):
            return None
        gang = self.gang_of(waiting)
        having = self.seen.copied.get(waiting.id)
        hosts = self._find_hosts(gang, having)
        if hosts is None:
            if having is None:
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

    def find_copies(self, waiting: Experiment) -> tuple[CopyData, ...]:
        """Return the copies of an experiment's data to hosts that have room for it now.

        When no host with the data could hold the experiment even if nothing ran there, choose hosts that could. Empty:
        the experiment has its data, or no host can get it.
        """
        having = self.seen.copied.get(waiting.id)
        if having is None:
            return ()
        under_way = find_copies_under_way(waiting, self.seen)
        if under_way:
            return under_way
        gang = self.gang_of(waiting)
        usable = self._find_usable(waiting)
        hosts = self._find_hosts(gang, usable)
        if hosts is None and self.room.find_hosts_when_empty(gang, having) is None:
            hosts = self.room.find_hosts_when_empty(gang, usable)
        return tuple(CopyData(host, waiting.id) for host in sorted(set(hosts or ()) - having))

    def _find_hosts(self, gang: Gang, among: Among) -> tuple[HostName, ...] | None:
        hosts = self.room.find_hosts(gang, among)
        if hosts is not None and self.head is not None:
            hosts = self.room.find_hosts_beside(self.head.reserve, gang, among)
        return hosts

    def _find_usable(self, waiting: Experiment) -> frozenset[HostName]:
        """Return the candidates to which the data of an experiment can be copied, or has been."""
        problems = {name: find_copy_problem(waiting, name, self.seen) for name in self.room.candidates}
        return frozenset(name for name, problem in problems.items() if problem is None or not _is_final(problem))

    def _find_lasting_problem(self, waiting: Experiment) -> ActionFailure | None:
        """Return why no host can get the data of an experiment; None: one can or has, or no host could hold it."""
        having = self.seen.copied.get(waiting.id)
        gang = self.gang_of(waiting)
        if having is None or self.room.find_hosts_when_empty(gang, having | self._find_usable(waiting)) is not None:
            return None
        refused = frozenset(self.room.candidates) - self._find_usable(waiting)
        hosts = self.room.find_hosts_when_empty(gang, having | refused) or ()
        problems = (find_copy_problem(waiting, host, self.seen) for host in hosts)
        return next((problem for problem in problems if problem is not None), None)

    def _choose_head(self, waiting: Experiment) -> None:
        """Make an experiment without a place the head, if it is the first one that the pool could hold when empty."""
        if self.head is not None or not self.could_ever_start(waiting):
            return
        gang = self.gang_of(waiting)
        among = self.seen.copied.get(waiting.id)
        settled = not self.exclusions and waiting.placed_at is None and not self.seen.unseen
        self.head = QueueHead(waiting, self.room.reserve_for(gang, among, settled=settled))
        self.addresses.keep_subnet_for(gang.size)


def give_place(
    waiting: Experiment, hosts: tuple[HostName, ...], connection: GangConnection, free: FreeByHost, now: datetime
) -> Experiment:
    """Return the experiment with its gang on these hosts, which are in the order of its jobs."""
    devices: dict[HostName, int] = {}  # how many devices of a host the gang has
    placed: dict[str, Job] = {}
    for index, (job, host) in enumerate(zip(waiting.gang, hosts, strict=True)):
        begin = devices.get(host, 0)
        devices[host] = begin + job.resources.gpus
        placed[job.name] = replace(
            job,
            state=State.STARTING,
            reason=Reason.PLACED,
            host=host,
            address=connection.addresses[index],
            port=connection.ports[index],
            gpus=free[host].gpus[begin : devices[host]],
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


def _keep_waiting(experiment: Experiment, reason: Reason, why: str = "") -> Experiment:
    if experiment.state is State.PENDING and experiment.reason is reason and (not why or experiment.message == why):
        return experiment
    message = why if why or experiment.reason in (Reason.NO_LEADER, Reason.QUOTA) else experiment.message
    return replace(experiment, state=State.PENDING, reason=reason, message=message)


def _await_leader(experiment: Experiment, observation: Observation) -> Experiment:
    message = describe_leaderless(observation)
    if (experiment.state, experiment.reason, experiment.message) == (State.PENDING, Reason.NO_LEADER, message):
        return experiment
    return replace(experiment, state=State.PENDING, reason=Reason.NO_LEADER, message=message)


def _is_final(problem: ActionFailure) -> bool:
    return problem.permanent or problem.lasted >= _GIVE_UP_COPYING


def _fail_for_data(experiment: Experiment, problem: ActionFailure) -> Experiment:
    """Return the experiment with jobs that have failed: the next pass gives it its verdict."""
    ended = [
        job
        if job.part is JobDuty.PREPARES
        else replace(job, state=State.FAILED, reason=Reason.DATA_FAILED, message=problem.message)
        for job in experiment.jobs
    ]
    return replace(
        experiment, jobs=tuple(ended), state=State.PENDING, reason=Reason.DATA_FAILED, message=problem.message
    )
