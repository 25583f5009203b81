"""Environments on every host of a gang: none of its jobs starts before all of its hosts have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from riseml.control.actions import EnsureImage, ShareImage
from riseml.control.observation import Observation
from riseml.model import Experiment, HostSeen, Job, JobKey, World
from riseml.names import HostName
from riseml.states import TERMINAL, Part, State


def awaited_images(world: World) -> frozenset[str]:
    """Return the references of the environments that some experiment waits for: the loop asks every host for them."""
    return frozenset(
        experiment.plan.image.reference
        for experiment in world.experiments
        if experiment.state not in TERMINAL and _needs_image(experiment)
    )


def _needs_image(experiment: Experiment) -> bool:
    if experiment.state is State.PENDING:  # its environment was made, and is looked for again once it has a place
        return False
    return any(
        job.state not in TERMINAL if job.part is Part.PREPARES else job.state is State.STARTING
        for job in experiment.jobs
    )


def starting_jobs(experiment: Experiment, seen: Observation) -> list[Job]:
    """The jobs that have a place and no container yet, and that nobody is ending."""
    return [
        job
        for job in experiment.gang
        if job.state is State.STARTING
        and job.ending is None
        and job.host is not None
        and not _is_made(experiment.key_of(job), seen.hosts.get(job.host))
    ]


def _is_made(key: JobKey, host: HostSeen | None) -> bool:
    return host is not None and key in host.containers


class Images:
    """Which environments are where, as one pass saw it."""

    def __init__(self, seen: Observation) -> None:
        self._seen = seen
        self._having: dict[str, list[HostName]] | None = None
        self._moving = frozenset(
            (action.host, action.reference) for action in seen.busy if isinstance(action, EnsureImage | ShareImage)
        )

    def are_ready(self, experiment: Experiment, jobs: list[Job]) -> bool:
        """True when every host of these jobs has the experiment's environment."""
        reference = experiment.plan.image.reference
        return all(_has(self._seen.hosts.get(job.host), reference) for job in jobs if job.host is not None)

    def wanted(self, experiment: Experiment, jobs: list[Job]) -> Iterator[EnsureImage | ShareImage]:
        """What brings the environment to the hosts of these jobs that answer and are known to lack it."""
        reference = experiment.plan.image.reference
        hosts = {job.host for job in jobs if job.host is not None}
        lacking = sorted(host for host in hosts if self._lacks(host, reference))
        makers: list[HostName] = []
        for host in lacking:
            if not self._seen.hosts[host].isolated:
                yield EnsureImage(host, experiment.id, reference)
                continue
            source = self._source(experiment, host)
            if source is not None:
                yield ShareImage(host, experiment.id, reference, source)
            else:
                makers.append(host)
        if makers:  # nobody has it any more: one makes it again, and the others get it from there
            builder = _builder(experiment)
            yield EnsureImage(builder if builder in makers else makers[0], experiment.id, reference)

    def moves(self, action: EnsureImage | ShareImage) -> bool:
        """True when this environment is on its way to its host already, for whichever experiment."""
        return (action.host, action.reference) in self._moving

    def _lacks(self, host: HostName, reference: str) -> bool:
        found = self._seen.hosts.get(host)
        if found is None or found.silent_since is not None:
            return False
        image = found.images.get(reference)
        return image is not None and not image.present

    def _source(self, experiment: Experiment, host: HostName) -> HostName | None:
        """A host that answers and has it: the one with the least trouble so far, the builder before others."""
        reference, builder = experiment.plan.image.reference, _builder(experiment)

        def rank(source: HostName) -> tuple[bool, int, bool, HostName]:
            problem = self._seen.problems.get(ShareImage(host, experiment.id, reference, source))
            trouble = (False, 0) if problem is None else (problem.permanent, problem.count)
            return (*trouble, source != builder, source)

        return min(self._sources().get(reference, ()), key=rank, default=None)

    def _sources(self) -> Mapping[str, list[HostName]]:
        if self._having is None:
            self._having = {}
            for name, host in self._seen.hosts.items():
                if host.silent_since is None and host.isolated:
                    for reference, image in host.images.items():
                        if image.present:
                            self._having.setdefault(reference, []).append(name)
        return self._having


def _has(host: HostSeen | None, reference: str) -> bool:
    image = None if host is None else host.images.get(reference)
    return image is not None and image.present


def _builder(experiment: Experiment) -> HostName | None:
    return None if experiment.build is None else experiment.build.host
