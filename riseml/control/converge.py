"""Compare the records with what the hosts have; the difference is the list of actions. A silent host gets none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from riseml.base.names import HostName
from riseml.base.states import TERMINAL, Network, Reason, State
from riseml.control import networks
from riseml.control.actions import (
    Action,
    CancelData,
    CancelImage,
    CancelRestore,
    CopyData,
    CopyImage,
    EnsureImage,
    FetchData,
    InheritOutput,
    RemoveJob,
    RestoreOutput,
    Signal,
    StartGang,
    StartJob,
    StopJob,
)
from riseml.control.data_copies import find_missing_copies
from riseml.control.images import ImageLocations, find_next_image, find_next_reference, find_starting_jobs
from riseml.control.networks import OccupiedHosts
from riseml.control.observation import Observation
from riseml.control.placement.candidates import find_record
from riseml.control.placement.hand_over import takes_whole_gangs
from riseml.control.saving import find_filling, find_saves
from riseml.control.verdict import find_kill_time
from riseml.model import ContainerObservation, Environment, Experiment, Job, JobKey, World
from riseml.spec.config.types import DataSource


def converge(world: World, observation: Observation, occupied: OccupiedHosts) -> Iterator[Action]:
    """Yield every action that makes the hosts match the records."""
    yield from dict.fromkeys(_find_actions(world, observation, occupied))


def _find_actions(world: World, observation: Observation, occupied: OccupiedHosts) -> Iterator[Action]:
    """Yield the actions; the start of a whole gang is repeated for each of its jobs (`converge` drops copies)."""
    experiments = {experiment.id: experiment for experiment in world.experiments}
    yield from _converge_containers(experiments, observation)
    images = ImageLocations(observation)
    fetched: set[tuple[HostName, str]] = set()
    later = _find_later_fetches(world, observation)
    for experiment in world.experiments:
        if experiment.state is State.PENDING:  # it has no place yet
            continue
        if experiment.id not in later:
            yield from _continue_build(experiment, observation)
        for action in _start_gang(experiment, observation, images, occupied):
            if not isinstance(action, EnsureImage | CopyImage):
                yield action
            elif not images.is_pending(action) and (action.host, action.reference) not in fetched:
                fetched.add((action.host, action.reference))
                yield action
        yield from find_saves(experiment, observation, is_released=not occupied.include(experiment))
    yield from _cancel_work(experiments, observation)
    yield from occupied.find_releases(experiments)


def _converge_containers(experiments: Mapping[int, Experiment], observation: Observation) -> Iterator[Action]:
    for name, host in sorted(observation.hosts.items()):
        if host.silent_since is None:
            for key, container in host.containers.items():
                yield from _converge_container(name, key, container, experiments.get(key.experiment), observation)


def _converge_container(
    name: HostName,
    key: JobKey,
    container: ContainerObservation,
    experiment: Experiment | None,
    observation: Observation,
) -> Iterator[Action]:
    if container.late:  # it may have printed lines that no server has read
        return
    job = None if experiment is None else find_record(experiment, key, name)
    is_unread = container.started and not container.running and not container.drained
    if experiment is None:
        yield RemoveJob(name, key)
    elif job is None:
        if not is_unread:  # followers also read the log of an earlier attempt to its end
            yield RemoveJob(name, key)
    elif job.state in TERMINAL:
        if container.running:
            yield StopJob(name, key, Signal.KILL)
        elif not is_unread:
            yield RemoveJob(name, key)
    elif container.running and job.ending_at is not None:
        late = observation.now >= find_kill_time(experiment, job, job.ending_at)
        yield StopJob(name, key, Signal.KILL if late else Signal.TERM)
    elif not (
        container.started
        or container.error
        or container.waits
        or job.ending
        or _may_lose_network(experiment, name, observation)
    ):
        yield _make_start(name, key, observation)


def _continue_build(experiment: Experiment, observation: Observation) -> Iterator[Action]:
    build = experiment.build
    if build is None or build.host is None or build.state is not State.STARTING:
        return
    host = observation.hosts.get(build.host)
    if host is None or host.silent_since is not None:
        return
    if build.reason is Reason.WAITING_FOR_DATA:
        yield FetchData(build.host, experiment.id)
        return
    image = find_next_image(experiment, host, observation)
    reference = None if image is None else find_next_reference(experiment, image, host)
    if reference is not None and reference in host.images:
        yield EnsureImage(build.host, experiment.id, reference)


def _find_later_fetches(world: World, observation: Observation) -> frozenset[int]:
    """Return the experiments that wait until another one has fetched the same data with the same keys.

    Fetches of the same data wait for each other, and those of a large set would hold all threads of a host that fetch
    data. Once one experiment has the data, the others fetch nothing.
    """
    present = {
        (experiment.plan.policy.data, experiment.environment)
        for experiment in world.experiments
        if experiment.id in observation.fetched
    }
    waiting: dict[tuple[HostName, Sequence[DataSource], Environment], list[FetchData]] = {}
    for experiment in world.experiments:
        build = experiment.build
        if build is None or build.host is None or build.reason is not Reason.WAITING_FOR_DATA:
            continue
        if build.state not in TERMINAL and (experiment.plan.policy.data, experiment.environment) not in present:
            alike = waiting.setdefault((build.host, experiment.plan.policy.data, experiment.environment), [])
            alike.append(FetchData(build.host, experiment.id))
    firsts = {next((fetch for fetch in alike if fetch in observation.busy), alike[0]) for alike in waiting.values()}
    return frozenset(fetch.experiment for alike in waiting.values() for fetch in alike if fetch not in firsts)


def _cancel_work(experiments: Mapping[int, Experiment], observation: Observation) -> Iterator[Action]:
    """Yield the cancellation of environments, data and outputs that only ending experiments wait for."""
    for action in observation.busy:
        if not isinstance(action, EnsureImage | FetchData | CopyData | InheritOutput | RestoreOutput):
            continue
        experiment = experiments.get(action.experiment)
        host = observation.hosts.get(action.host)
        over = experiment is None or experiment.state in TERMINAL or experiment.verdict is not None
        over = over or (isinstance(action, CopyData) and _is_elsewhere(experiment, action.host))
        if over and host is not None and host.silent_since is None:
            if isinstance(action, EnsureImage):
                yield CancelImage(action.host, action.experiment, action.reference)
            elif isinstance(action, InheritOutput | RestoreOutput):
                yield CancelRestore(action.host, action.experiment)
            else:
                yield CancelData(action.host, action.experiment)


def _is_elsewhere(experiment: Experiment | None, host: HostName) -> bool:
    """Return True when an experiment has its place, and none of its jobs is on this host."""
    return (
        experiment is not None and experiment.placed_at is not None and all(job.host != host for job in experiment.gang)
    )


def _start_gang(
    experiment: Experiment, observation: Observation, images: ImageLocations, occupied: OccupiedHosts
) -> Iterator[Action]:
    """Yield the next actions that start a placed gang: network and environment on every host, then the jobs."""
    if experiment.placed_at is None or experiment.state in TERMINAL:
        return
    jobs = find_starting_jobs(experiment, observation)
    if not jobs:
        return
    yield from networks.find_preparations(experiment, jobs, observation)
    copies = tuple(find_missing_copies(experiment, jobs, observation))
    yield from (copy for copy in copies if _answers(copy.host, observation))
    if not images.are_ready(experiment, jobs):
        yield from images.transfers(experiment, jobs)
    elif (
        not copies
        and networks.hosts_are_prepared(experiment, jobs, observation)
        and not _earlier_attempt_runs(experiment, observation, occupied)
    ):
        yield from _start_jobs(experiment, jobs, observation)


def _start_jobs(experiment: Experiment, jobs: list[Job], observation: Observation) -> Iterator[Action]:
    """Yield the starts of jobs whose hosts have everything; before them what fills the output."""
    filling = find_filling(experiment, observation)
    if filling is not None:
        if _answers(filling.host, observation):
            yield filling
        return
    for job in jobs:
        if (
            job.host is not None
            and _answers(job.host, observation)
            and not _may_lose_network(experiment, job.host, observation)
        ):
            yield _make_start(job.host, experiment.key_of(job), observation)


def _may_lose_network(experiment: Experiment, name: HostName, observation: Observation) -> bool:
    """Return True while a job that starts on a host may find its network across hosts gone.

    An engine takes such a network down on a host with the last container that ends there, half a second after the end
    (seen with Engine 20.10). A container that starts meanwhile fails, its next start waits for 20 s, and Swarm counts
    a connection that nothing clears. So containers that have ended are removed first.
    """
    return experiment.network is Network.OVERLAY and any(
        key.experiment == experiment.id and container.started and (container.late or not container.running)
        for key, container in observation.hosts[name].containers.items()
    )


def _answers(name: HostName, observation: Observation) -> bool:
    host = observation.hosts.get(name)
    return host is not None and host.silent_since is None


def _make_start(host: HostName, key: JobKey, observation: Observation) -> StartJob | StartGang:
    """Return the action that starts a job: alone, or its whole gang on a host with its own queue."""
    if takes_whole_gangs(host, observation):
        return StartGang(host, key.experiment, key.attempt)
    return StartJob(host, key)


def _earlier_attempt_runs(experiment: Experiment, observation: Observation, occupied: OccupiedHosts) -> bool:
    """Return True while an earlier attempt runs on a host that answers, or its start is pending; for example on a host
    that was lost and came back.
    """
    running = (
        (host, key)
        for host in occupied.hosts_of(experiment.id)
        for key, container in observation.hosts[host].containers.items()
        if key.experiment == experiment.id and container.running
    )
    starting = ((action.host, action.key) for action in observation.busy if isinstance(action, StartJob))
    gangs = (
        action for action in observation.busy if isinstance(action, StartGang) and action.experiment == experiment.id
    )
    if any(action.attempt < max(job.attempt for job in experiment.gang) for action in gangs):
        return True
    return any(
        key.experiment == experiment.id and find_record(experiment, key, host) is None
        for host, key in (*running, *starting)
    )
