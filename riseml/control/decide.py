"""decide(world, seen) -> Decision: everything the server does next, and what it must remember first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from riseml.control.actions import Action, owner_of
from riseml.control.converge import converge
from riseml.control.images import Images, starting_jobs
from riseml.control.networks import OccupiedHosts
from riseml.control.observation import Observation
from riseml.control.placement.connect import repair_networks
from riseml.control.placement.place import place_gangs
from riseml.control.settle import choose_builder, settle, with_jobs
from riseml.control.verdict import conclude, end_jobs, grace_ends, judge
from riseml.model import Experiment, Job, World
from riseml.states import TERMINAL, Part, Reason, State, Wanted


@dataclass(frozen=True, slots=True)
class Decision:
    """The world to write down, what to do then, and when to look again at the latest (None: when something happens)."""

    world: World
    actions: tuple[Action, ...]
    wake_at: datetime | None = None


def decide(world: World, seen: Observation) -> Decision:
    """Level-triggered: from what is known and what was seen, never from how it came about."""
    images = Images(seen)
    settled = World(tuple(one if _only_waits(one) else _advance(one, seen, images) for one in world.experiments))
    held = frozenset(experiment.id for experiment in world.experiments if experiment.placed_at is not None)
    moved = repair_networks(place_gangs(settled, seen, held), seen).experiments
    placed = World(tuple(one if one.state is State.PENDING else _roll_up(one) for one in moved))
    occupied = OccupiedHosts(seen)
    wanted = tuple(converge(placed, seen, occupied))
    owners = frozenset(owner_of(action) for action in (*seen.busy, *wanted))
    after = World(
        tuple(
            replace(experiment, closed=True)
            if experiment.state in TERMINAL and not occupied.have(experiment.id) and experiment.id not in owners
            else experiment
            for experiment in placed.experiments
        )
    )
    actions = tuple(action for action in wanted if action not in seen.busy)
    return Decision(after, actions, seen.now if _look_again(world, after, seen) else _wake_at(after, seen))


def to_save(before: World, after: World) -> tuple[tuple[Experiment, Experiment], ...]:
    """What changed, as (old, new), in the order of saving: who takes a place comes last, for the room that it takes may
    have been given back by one of the others; were it saved first, a crash in between would give the room twice."""
    both = zip(before.experiments, after.experiments, strict=True)
    pairs = [(old, new) for old, new in both if old is not new and old != new]
    return tuple(sorted(pairs, key=lambda pair: takes_place(*pair)))


def takes_place(old: Experiment, new: Experiment) -> bool:
    """True when the experiment was given its place by this decision."""
    return old.placed_at is None and new.placed_at is not None


def _advance(experiment: Experiment, seen: Observation, images: Images) -> Experiment:
    if experiment.state in TERMINAL:
        return experiment
    experiment = settle(choose_builder(_rewind(experiment, seen.now), seen), seen, images)
    return conclude(end_jobs(judge(_date_start(experiment, seen.now), seen), seen), seen)


def _only_waits(experiment: Experiment) -> bool:
    """True when nothing but a place or a kill can happen to it next."""
    return (
        experiment.state is State.PENDING
        and experiment.wanted is Wanted.RUN
        and experiment.verdict is None
        and experiment.started_at is None
    )


def _date_start(experiment: Experiment, now: datetime) -> Experiment:
    """An experiment has started with the first of its jobs, however short that one lived.

    A job is dated by the clock of its host, and `max_duration` is measured by ours: a host whose clock is hours behind
    must not end it at once, so that it starts when it got its place at the earliest, and now at the latest.
    """
    if experiment.started_at is not None:
        return experiment
    started = [job.started_at for job in experiment.gang if job.started_at is not None]
    if not started:
        return experiment
    return replace(experiment, started_at=min(max(min(started), experiment.placed_at or now), now))


def _rewind(experiment: Experiment, now: datetime) -> Experiment:
    """Bring deadlines back when the clock was set back: a grace is never longer than it says from now on."""
    verdict = experiment.verdict
    if verdict is not None and verdict.at > now:
        experiment = replace(experiment, verdict=replace(verdict, at=now))
    return with_jobs(experiment, [_rewind_job(job, now) for job in experiment.jobs])


def _rewind_job(job: Job, now: datetime) -> Job:
    if job.state in TERMINAL:
        return job
    if job.ending_at is not None and job.ending_at > now:
        job = replace(job, ending_at=now)
    if job.unseen_since is not None and job.unseen_since > now:
        job = replace(job, unseen_since=now)
    return job


def _roll_up(experiment: Experiment) -> Experiment:
    """The experiment's own state before its end.

    Raises:
        ValueError: it has no jobs; a roll-up of nothing is never a success.
    """
    if not experiment.jobs:
        raise ValueError(f"experiment {experiment.id} has no jobs")
    if experiment.state in TERMINAL or experiment.verdict is not None:
        return experiment
    gang, build = experiment.gang, experiment.build
    if build is not None and build.state not in TERMINAL:
        begun = build.state is not State.CREATED
        return _in(experiment, State.BUILDING, build.reason, experiment.message) if begun else experiment
    starting = [job.reason for job in gang if job.state is State.STARTING]
    if starting:
        waits = Reason.WAITING_FOR_IMAGE in starting
        return _in(experiment, State.STARTING, Reason.WAITING_FOR_IMAGE if waits else Reason.PLACED, experiment.message)
    if any(job.state is State.RUNNING for job in gang):
        return _in(experiment, State.RUNNING, Reason.RUNNING, "")
    return experiment


def _in(experiment: Experiment, state: State, reason: Reason, message: str) -> Experiment:
    if (experiment.state, experiment.reason, experiment.message) == (state, reason, message):
        return experiment
    return replace(experiment, state=state, reason=reason, message=message)


def _look_again(before: World, after: World, seen: Observation) -> bool:
    """True when the next pass knows more than this one: a place was given up and may be taken again, or one was taken
    on a host that was not asked yet whether it has the environment.
    """
    for old, new in zip(before.experiments, after.experiments, strict=True):
        if old is new:
            continue
        if old.placed_at is not None and new.placed_at is None:
            return True
        if takes_place(old, new) and any(
            new.plan.image.reference not in seen.hosts[job.host].images
            for job in starting_jobs(new, seen)
            if job.host is not None
        ):
            return True
    return False


def _wake_at(world: World, seen: Observation) -> datetime | None:
    """The next moment at which the passing of time alone changes something."""
    active = [one for one in world.experiments if not _only_waits(one) and one.state not in TERMINAL]
    times = [time for experiment in active for time in _deadlines(experiment, seen)]
    times += [
        host.silent_since + timedelta(seconds=seen.lost_after)
        for host in seen.hosts.values()
        if host.silent_since is not None
    ]
    return min((time for time in times if time > seen.now), default=None)


def _deadlines(experiment: Experiment, seen: Observation) -> Iterator[datetime]:
    limit, verdict = experiment.plan.max_duration, experiment.verdict
    if limit is not None and experiment.started_at is not None:
        yield experiment.started_at + timedelta(seconds=limit)
    for job in experiment.jobs:
        if job.unseen_since is not None and job.state not in TERMINAL:
            yield job.unseen_since + timedelta(seconds=seen.lost_after)
        if job.ending_at is not None and job.state not in TERMINAL:
            yield job.ending_at + timedelta(seconds=experiment.plan.stop_grace)
        elif verdict is not None and job.part is Part.HELPS and job.state not in TERMINAL:
            yield grace_ends(experiment, job, verdict)
