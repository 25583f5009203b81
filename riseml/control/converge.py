"""The difference between the records and what is there, as actions; none on a silent host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from riseml.control import networks
from riseml.control.actions import Action, CancelImage, EnsureImage, RemoveJob, ShareImage, Signal, StartJob, StopJob
from riseml.control.images import Images, starting_jobs
from riseml.control.networks import OccupiedHosts
from riseml.control.observation import Observation
from riseml.control.placement.candidates import find_record
from riseml.model import ContainerSeen, Experiment, JobKey, World
from riseml.names import HostName
from riseml.states import TERMINAL, State


def converge(world: World, seen: Observation, occupied: OccupiedHosts) -> Iterator[Action]:
    """Everything that brings the hosts nearer to the records."""
    experiments = {experiment.id: experiment for experiment in world.experiments}
    for name, host in sorted(seen.hosts.items()):
        if host.silent_since is None:
            for key, found in host.containers.items():
                yield from _converge_container(name, key, found, experiments.get(key.experiment), seen)
    images = Images(seen)
    fetched: set[tuple[HostName, str]] = set()
    for experiment in world.experiments:
        if experiment.state is State.PENDING:  # nothing of it is to be made yet
            continue
        yield from _converge_build(experiment, seen)
        for action in _start_gang(experiment, seen, images, occupied):
            if isinstance(action, EnsureImage | ShareImage):
                if images.moves(action) or (action.host, action.reference) in fetched:
                    continue
                fetched.add((action.host, action.reference))
            yield action
    yield from _give_up(experiments, seen)
    yield from occupied.releases(experiments)


def _converge_container(
    name: HostName, key: JobKey, found: ContainerSeen, experiment: Experiment | None, seen: Observation
) -> Iterator[Action]:
    job = None if experiment is None else find_record(experiment, key, name)
    if experiment is None or job is None:
        undrained = found.started and not found.running and not found.drained
        if experiment is None or not undrained:  # the last words of an earlier attempt are read, too
            yield RemoveJob(name, key)
    elif job.state in TERMINAL:
        if found.running:
            yield StopJob(name, key, Signal.KILL)
        elif found.drained or not found.started:
            yield RemoveJob(name, key)
    elif found.running and job.ending_at is not None:
        late = seen.now >= job.ending_at + timedelta(seconds=experiment.plan.stop_grace)
        yield StopJob(name, key, Signal.KILL if late else Signal.TERM)
    elif not found.started and not found.error and job.ending is None:
        yield StartJob(name, key)


def _converge_build(experiment: Experiment, seen: Observation) -> Iterator[Action]:
    reference = experiment.plan.image.reference
    build = experiment.build
    if build is None or build.host is None or build.state is not State.STARTING:
        return
    host = seen.hosts.get(build.host)
    if host is not None and host.silent_since is None and reference in host.images:
        yield EnsureImage(build.host, experiment.id, reference)


def _give_up(experiments: Mapping[int, Experiment], seen: Observation) -> Iterator[Action]:
    """Nobody waits any more for the environment of an experiment that is ending."""
    for action in seen.busy:
        if not isinstance(action, EnsureImage):
            continue
        experiment, host = experiments.get(action.experiment), seen.hosts.get(action.host)
        over = experiment is None or experiment.state in TERMINAL or experiment.verdict is not None
        if over and host is not None and host.silent_since is None:
            yield CancelImage(action.host, action.experiment, action.reference)


def _start_gang(experiment: Experiment, seen: Observation, images: Images, occupied: OccupiedHosts) -> Iterator[Action]:
    """What a placed gang still lacks: what its jobs share and their environment, both on every host; then the jobs."""
    if experiment.placed_at is None or experiment.state in TERMINAL:
        return
    jobs = starting_jobs(experiment, seen)
    if not jobs:
        return
    yield from networks.missing(experiment, jobs, seen)
    if not images.are_ready(experiment, jobs):
        yield from images.wanted(experiment, jobs)
    elif networks.are_ready(experiment, jobs, seen) and not _goes_on(experiment, seen, occupied):
        for job in jobs:
            if job.host is not None and seen.hosts[job.host].silent_since is None:
                yield StartJob(job.host, experiment.key_of(job))


def _goes_on(experiment: Experiment, seen: Observation, occupied: OccupiedHosts) -> bool:
    """True while an earlier attempt runs where we can see it, or may be about to: on a host that was lost and is back,
    say.
    """
    running = (
        (host, key)
        for host in occupied.hosts_of(experiment.id)
        for key, found in seen.hosts[host].containers.items()
        if key.experiment == experiment.id and found.running
    )
    starting = ((action.host, action.key) for action in seen.busy if isinstance(action, StartJob))
    return any(
        key.experiment == experiment.id and find_record(experiment, key, host) is None
        for host, key in (*running, *starting)
    )
