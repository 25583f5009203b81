"""decide(world, seen) -> Decision: everything the server does next, and what it must remember first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from riseml.control.actions import (
    Action,
    CancelImage,
    EnsureImage,
    Prepare,
    Release,
    Remove,
    Signal,
    Start,
    Stop,
    owner_of,
)
from riseml.control.observation import Observation
from riseml.control.place import place, readdress
from riseml.control.settle import key_of, settle
from riseml.control.verdict import conclude, end_jobs, grace_ends, judge
from riseml.model import ContainerSeen, Experiment, HostSeen, Job, JobKey, World
from riseml.names import HostName
from riseml.states import TERMINAL, Part, Reason, State


@dataclass(frozen=True, slots=True)
class Decision:
    """The world to write down, what to do then, and when to look again at the latest (None: when something happens)."""

    world: World
    actions: tuple[Action, ...]
    wake_at: datetime | None = None


def decide(world: World, seen: Observation) -> Decision:
    """Level-triggered: from what is known and what was seen, never from how it came about."""
    settled = World(tuple(_advance(experiment, seen) for experiment in world.experiments))
    held = frozenset(experiment.id for experiment in world.experiments if experiment.placed_at is not None)
    placed = World(
        tuple(_roll_up(experiment) for experiment in readdress(place(settled, seen, held), seen).experiments)
    )
    wanted = tuple(_converge(placed, seen))
    after = World(tuple(_close(experiment, seen, wanted) for experiment in placed.experiments))
    actions = tuple(action for action in wanted if action not in seen.busy)
    moved = any(e.id in held and e.placed_at is None for e in after.experiments)
    return Decision(after, actions, seen.now if moved else _wake_at(after, seen))


def to_save(before: World, after: World) -> tuple[tuple[Experiment, Experiment], ...]:
    """What changed, as (old, new), in the order of saving: who takes a place comes last, for the room that it takes may
    have been given back by one of the others; were it saved first, a crash in between would give the room twice."""
    pairs = [(old, new) for old, new in zip(before.experiments, after.experiments, strict=True) if old != new]
    return tuple(sorted(pairs, key=lambda pair: takes_place(*pair)))


def takes_place(old: Experiment, new: Experiment) -> bool:
    """True when the experiment was given its place by this decision."""
    return old.placed_at is None and new.placed_at is not None


def _advance(experiment: Experiment, seen: Observation) -> Experiment:
    if experiment.state in TERMINAL:
        return experiment
    experiment = settle(_choose_builder(_rewind(experiment, seen.now), seen), seen)
    return conclude(end_jobs(judge(_date_start(experiment), seen), seen), seen)


def _date_start(experiment: Experiment) -> Experiment:
    """An experiment has started with the first of its jobs, however short that one lived."""
    started = [
        job.started_at for job in experiment.jobs if job.part is not Part.PREPARES and job.started_at is not None
    ]
    if experiment.started_at is not None or not started:
        return experiment
    return replace(experiment, started_at=min(started))


def _rewind(experiment: Experiment, now: datetime) -> Experiment:
    """Bring deadlines back when the clock was set back: a grace is never longer than it says from now on."""
    verdict = experiment.verdict
    if verdict is not None and verdict.at > now:
        experiment = replace(experiment, verdict=replace(verdict, at=now))
    if any(job.ending_at is not None and job.ending_at > now for job in experiment.jobs):
        jobs = tuple(
            replace(job, ending_at=now) if job.ending_at is not None and job.ending_at > now else job
            for job in experiment.jobs
        )
        experiment = replace(experiment, jobs=jobs)
    return experiment


def _choose_builder(experiment: Experiment, seen: Observation) -> Experiment:
    """The host that makes the environment: the first one that answers."""
    answering = sorted(name for name, host in seen.hosts.items() if host.silent_since is None)
    if not answering:
        return experiment
    jobs = tuple(
        replace(job, host=answering[0]) if job.part is Part.PREPARES and job.host is None else job
        for job in experiment.jobs
    )
    return replace(experiment, jobs=jobs)


def _roll_up(experiment: Experiment) -> Experiment:
    """The experiment's own state before its end.

    Raises:
        ValueError: it has no jobs; a roll-up of nothing is never a success.
    """
    if not experiment.jobs:
        raise ValueError(f"experiment {experiment.id} has no jobs")
    if experiment.state in TERMINAL or experiment.verdict is not None:
        return experiment
    gang = [job for job in experiment.jobs if job.part is not Part.PREPARES]
    build = next((job for job in experiment.jobs if job.part is Part.PREPARES), None)
    if build is not None and build.state not in TERMINAL:
        begun = build.state is not State.CREATED
        return replace(experiment, state=State.BUILDING, reason=build.reason) if begun else experiment
    if any(job.state is State.STARTING for job in gang):
        return replace(experiment, state=State.STARTING, reason=Reason.PLACED)
    if any(job.state is State.RUNNING for job in gang):
        return replace(experiment, state=State.RUNNING, reason=Reason.RUNNING, message="")
    return experiment


def _converge(world: World, seen: Observation) -> Iterator[Action]:
    """The difference between the records and what is there, as actions; none on a silent host."""
    experiments = {experiment.id: experiment for experiment in world.experiments}
    for name, host in sorted(seen.hosts.items()):
        if host.silent_since is not None:
            continue
        for key, found in sorted(host.containers.items()):
            yield from _converge_container(name, key, found, experiments.get(key.experiment), seen)
        for experiment in world.experiments:
            yield from _converge_image(name, experiment, host, seen)
            yield from _converge_jobs(name, experiment, host)
        for owner in sorted(host.networks):
            if not _needs_network(owner, experiments.get(owner), name, host):
                yield Release(name, owner)


def _converge_container(
    name: HostName, key: JobKey, found: ContainerSeen, experiment: Experiment | None, seen: Observation
) -> Iterator[Action]:
    job = None if experiment is None else _record(experiment, key, name)
    if experiment is None or job is None:
        undrained = found.started and not found.running and not found.drained
        if experiment is None or not undrained:  # the last words of an earlier attempt are read, too
            yield Remove(name, key)
    elif job.state in TERMINAL:
        if found.running:
            yield Stop(name, key, Signal.KILL)
        elif found.drained or not found.started:
            yield Remove(name, key)
    elif found.running and job.ending_at is not None:
        late = seen.now >= job.ending_at + timedelta(seconds=experiment.plan.stop_grace)
        yield Stop(name, key, Signal.KILL if late else Signal.TERM)
    elif not found.started and not found.error and job.ending is None:
        yield Start(name, key)


def _converge_image(name: HostName, experiment: Experiment, host: HostSeen, seen: Observation) -> Iterator[Action]:
    reference = experiment.plan.image.reference
    for job in experiment.jobs:
        if job.part is not Part.PREPARES or job.host != name:
            continue
        begun = EnsureImage(name, experiment.id, reference)
        if job.state in TERMINAL:
            if begun in seen.busy:
                yield CancelImage(name, experiment.id, reference)
        elif job.state is State.STARTING and reference in host.images:
            yield begun


def _converge_jobs(name: HostName, experiment: Experiment, host: HostSeen) -> Iterator[Action]:
    """What a placed gang still lacks here: first what its jobs share, then the jobs."""
    missing = [
        Start(name, key_of(experiment, job))
        for job in experiment.jobs
        if job.host == name
        and job.state is State.STARTING
        and job.part is not Part.PREPARES
        and job.ending is None
        and key_of(experiment, job) not in host.containers
    ]
    if missing and host.networks.get(experiment.id) is None:
        yield Prepare(name, experiment.id, experiment.subnet)
    else:
        yield from missing


def _record(experiment: Experiment, key: JobKey, name: HostName) -> Job | None:
    """The record that a container belongs to; None for one of an older attempt or on a host that is not its own."""
    for job in experiment.jobs:
        if job.name == key.job and job.attempt == key.attempt and job.host == name:
            return job
    return None


def _needs_network(owner: int, experiment: Experiment | None, name: HostName, host: HostSeen) -> bool:
    if any(key.experiment == owner for key in host.containers):
        return True
    if experiment is None or experiment.state in TERMINAL:
        return False
    return any(
        job.host == name and job.state not in TERMINAL and job.part is not Part.PREPARES for job in experiment.jobs
    )


def _close(experiment: Experiment, seen: Observation, wanted: tuple[Action, ...]) -> Experiment:
    """Closed: ended, and no host that answers holds or is about to hold anything of it."""
    if experiment.state not in TERMINAL:
        return experiment
    for host in seen.hosts.values():
        if host.silent_since is None and (
            experiment.id in host.networks or any(key.experiment == experiment.id for key in host.containers)
        ):
            return experiment
    if any(owner_of(action) == experiment.id for action in (*seen.busy, *wanted)):
        return experiment
    return replace(experiment, closed=True)


def _wake_at(world: World, seen: Observation) -> datetime | None:
    """The next moment at which the passing of time alone changes something."""
    times = [time for experiment in world.experiments for time in _deadlines(experiment)]
    times += [
        host.silent_since + timedelta(seconds=seen.lost_after)
        for host in seen.hosts.values()
        if host.silent_since is not None
    ]
    return min((time for time in times if time > seen.now), default=None)


def _deadlines(experiment: Experiment) -> Iterator[datetime]:
    if experiment.state in TERMINAL:
        return
    limit, verdict = experiment.plan.max_duration, experiment.verdict
    if limit is not None and experiment.started_at is not None:
        yield experiment.started_at + timedelta(seconds=limit)
    for job in experiment.jobs:
        if job.ending_at is not None and job.state not in TERMINAL:
            yield job.ending_at + timedelta(seconds=experiment.plan.stop_grace)
        elif verdict is not None and job.part is Part.HELPS and job.state not in TERMINAL:
            yield grace_ends(experiment, job, verdict)
