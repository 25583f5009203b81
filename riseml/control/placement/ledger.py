"""What is left on every host: cores, MiB and GPU device ids, by the records and never by a count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from riseml.control.actions import StartJob
from riseml.control.explanation import Obstacle
from riseml.control.observation import Observation
from riseml.model import Capacity, Experiment, HostSeen, Job, JobKey
from riseml.names import HostName
from riseml.spec.config.types import Labels, Resources
from riseml.states import PLACED, TERMINAL, Network, Part

SLACK = 1e-6
"""Cores; sums of 0.1 must not refuse what fits."""


@dataclass(frozen=True, slots=True)
class Free:
    """What is left on one host: cores, MiB, GPU device ids."""

    cpus: float
    mem: int
    gpus: tuple[str, ...]

    def holds(self, need: Resources) -> bool:
        return need.cpus <= self.cpus + SLACK and need.mem <= self.mem and need.gpus <= len(self.gpus)

    def less(self, need: Resources) -> Free:
        return Free(self.cpus - need.cpus, self.mem - need.mem, self.gpus[need.gpus :])


Room = Mapping[HostName, Free]


@dataclass(frozen=True, slots=True)
class Site:
    """A host as a place for jobs. `gpus` is how many it has in all.

    `link`: hosts of the same link may share a gang; None: a gang that is here is here as a whole.
    """

    labels: Mapping[str, str]
    gpus: int
    link: str | None

    def suits(self, wanted: Labels) -> bool:
        """True when it has all of these labels."""
        return not wanted or all(self.labels.get(name) == value for name, value in wanted)


def free_room(experiments: Iterable[Experiment], hosts: Mapping[HostName, HostSeen]) -> dict[HostName, Free]:
    """What is left on every host."""
    held = held_jobs(experiments)
    return {name: left_of(host.capacity, held.get(name, [])) for name, host in sorted(hosts.items())}


def held_jobs(experiments: Iterable[Experiment]) -> dict[HostName, list[Job]]:
    """The jobs that hold room, by host."""
    held: dict[HostName, list[Job]] = {}
    for experiment in experiments:
        if experiment.placed_at is None:
            continue
        for job in experiment.jobs:
            if job.host is not None and job.state in PLACED and job.part is not Part.PREPARES:
                held.setdefault(job.host, []).append(job)
    return held


def left_of(capacity: Capacity, jobs: Iterable[Job]) -> Free:
    """What these jobs leave of a host."""
    cpus, mem, taken = capacity.cpus, capacity.mem, set[str]()
    for job in jobs:
        cpus -= job.resources.cpus
        mem -= job.resources.mem
        taken.update(job.gpus)
    gpus = tuple(gpu for gpu in capacity.gpus if gpu not in taken) if taken else capacity.gpus
    return Free(cpus, mem, gpus)


def record_of(experiment: Experiment, key: JobKey, host: HostName) -> Job | None:
    """The record that a container belongs to; None for one of an older attempt or on a host that is not its own."""
    for job in experiment.jobs:
        if job.name == key.job and job.attempt == key.attempt and job.host == host:
            return job
    return None


def obstacles(experiments: Mapping[int, Experiment], seen: Observation) -> dict[HostName, Obstacle]:
    """The hosts that get nothing new, and why."""
    late = frozenset(
        action.host
        for action in seen.busy
        if isinstance(action, StartJob) and not _is_recorded(action.key, action.host, experiments)
    )
    found: dict[HostName, Obstacle] = {}
    for name, host in seen.hosts.items():
        if host.silent_since is not None:
            found[name] = Obstacle.LOST if seen.is_lost(host) else Obstacle.SILENT
        elif not host.taking:
            found[name] = Obstacle.DRAINED
        elif name in late or any(
            container.running and not _is_recorded(key, name, experiments) for key, container in host.containers.items()
        ):
            found[name] = Obstacle.STALE
    return found


def find_sites(seen: Observation, closed: Iterable[HostName], away: Iterable[HostName]) -> dict[HostName, Site]:
    """The hosts that are not `closed`, in the order of their names, as places for jobs.

    Those that are `away` do not make the networks of their swarm either.
    """
    shut, gone = frozenset(closed), frozenset(away)
    swarms = frozenset(host.swarm for name, host in seen.hosts.items() if host.manager and name not in gone) - {""}
    return {
        name: Site(host.labels, len(host.capacity.gpus), _link(host, seen, swarms))
        for name, host in sorted(seen.hosts.items())
        if name not in shut
    }


def _link(host: HostSeen, seen: Observation, swarms: frozenset[str]) -> str | None:
    if not seen.shared_output or not host.isolated:
        return None
    if seen.network is Network.OVERLAY:
        return host.swarm if host.swarm in swarms else None
    return "address" if seen.network is Network.HOST and host.address else None


def _is_recorded(key: JobKey, host: HostName, experiments: Mapping[int, Experiment]) -> bool:
    experiment = experiments.get(key.experiment)
    job = None if experiment is None else record_of(experiment, key, host)
    return job is not None and job.state not in TERMINAL
