"""Which hosts have the environment of a gang, and what brings it to the others.

No job of a gang starts before every host of the gang has the environment.

The base image is named by a tag, and a tag may move at any time. So the tag is resolved once, on the host that builds,
before the gang gets its place. The record keeps what it stood for, and every host and every attempt runs that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from riseml.control.actions import EnsureImage, ShareImage
from riseml.control.observation import Observation
from riseml.model import Experiment, HostSeen, Image, Job, JobKey, World
from riseml.names import HostName
from riseml.states import TERMINAL, Part, State


def awaited_images(world: World) -> frozenset[str]:
    """Return the references of the environments that some experiment waits for: the loop asks every host for them."""
    waiting = [one for one in world.experiments if one.state not in TERMINAL and _needs_image(one)]
    tags = (one.plan.image.base for one in waiting if _lacks_resolution(one))
    return frozenset((*(one.image.reference for one in waiting), *tags))


def resolve_image(experiment: Experiment, seen: Observation) -> Experiment:
    """Return the experiment with what the tag of its base image stands for on the host that builds, once that is seen.

    Processes have no images: nothing is resolved there.
    """
    build = experiment.build
    if build is None or not _lacks_resolution(experiment):
        return experiment
    host = None if build.host is None else seen.hosts.get(build.host)
    found = None if host is None or host.silent_since is not None else host.images.get(experiment.plan.image.base)
    if found is None or not found.present or not found.resolved:
        return experiment
    return replace(experiment, resolved=found.resolved)


def find_next_reference(experiment: Experiment, host: HostSeen) -> str:
    """Return the reference that the build needs next on a host: the base, to resolve its tag, or the environment."""
    base = host.images.get(experiment.plan.image.base)
    if _lacks_resolution(experiment) and host.isolated and (base is None or not base.present):
        return experiment.plan.image.base
    return experiment.image.reference


def choose_image(experiment: Experiment, reference: str) -> Image:
    """Return the image to make for a reference: the whole environment, or its base alone.

    Args:
        experiment: the one that waits for the image.
        reference: what `find_next_reference` returned for the host.
    """
    image = experiment.image
    return image if reference == image.reference else Image(image.base)


def _lacks_resolution(experiment: Experiment) -> bool:
    build = experiment.build
    return not experiment.resolved and build is not None and build.state not in TERMINAL


def _needs_image(experiment: Experiment) -> bool:
    if experiment.state is State.PENDING:  # the loop asks the hosts for it again once it has a place
        return False
    return any(
        job.state not in TERMINAL if job.part is Part.PREPARES else job.state is State.STARTING
        for job in experiment.jobs
    )


def find_starting_jobs(experiment: Experiment, seen: Observation) -> list[Job]:
    """Return the jobs that have a place, no container yet, and no reason to end."""
    return [
        job
        for job in experiment.gang
        if job.state is State.STARTING
        and job.ending is None
        and job.host is not None
        and not _has_container(experiment.key_of(job), seen.hosts.get(job.host))
    ]


def _has_container(key: JobKey, host: HostSeen | None) -> bool:
    return host is not None and key in host.containers


class ImageLocations:
    """Which hosts have which environments, as one pass saw it."""

    def __init__(self, seen: Observation) -> None:
        self._seen = seen
        self._known_sources: dict[str, list[HostName]] | None = None
        self._pending = frozenset(
            (action.host, action.reference) for action in seen.busy if isinstance(action, EnsureImage | ShareImage)
        )

    def are_ready(self, experiment: Experiment, jobs: list[Job]) -> bool:
        """Return True when every host of these jobs has the experiment's environment."""
        reference = experiment.image.reference
        return all(_has_image(self._seen.hosts.get(job.host), reference) for job in jobs if job.host is not None)

    def transfers(self, experiment: Experiment, jobs: list[Job]) -> Iterator[EnsureImage | ShareImage]:
        """Yield the actions that bring the environment to the hosts of these jobs that answer and lack it."""
        reference = experiment.image.reference
        hosts = {job.host for job in jobs if job.host is not None}
        lacking = sorted(host for host in hosts if self._lacks(host, reference))
        makers: list[HostName] = []
        for host in lacking:
            if not self._seen.hosts[host].isolated:
                yield EnsureImage(host, experiment.id, reference)
                continue
            source = self._choose_source(experiment, host)
            if source is not None:
                yield ShareImage(host, experiment.id, reference, source)
            else:
                makers.append(host)
        if makers:  # no host has it any more: one builds it again, and the others get it from there
            builder = _builder_of(experiment)
            yield EnsureImage(builder if builder in makers else makers[0], experiment.id, reference)

    def is_pending(self, action: EnsureImage | ShareImage) -> bool:
        """Return True when an action already brings this environment to its host, for this or another experiment."""
        return (action.host, action.reference) in self._pending

    def _lacks(self, host: HostName, reference: str) -> bool:
        found = self._seen.hosts.get(host)
        if found is None or found.silent_since is not None:
            return False
        image = found.images.get(reference)
        return image is not None and not image.present

    def _choose_source(self, experiment: Experiment, host: HostName) -> HostName | None:
        """Return a host that answers and has the environment: one with the fewest failures; of equals, the builder."""
        reference, builder = experiment.image.reference, _builder_of(experiment)

        def rank(source: HostName) -> tuple[bool, int, bool, HostName]:
            problem = self._seen.problems.get(ShareImage(host, experiment.id, reference, source))
            failures = (False, 0) if problem is None else (problem.permanent, problem.count)
            return (*failures, source != builder, source)

        return min(self._find_sources().get(reference, ()), key=rank, default=None)

    def _find_sources(self) -> Mapping[str, list[HostName]]:
        if self._known_sources is None:
            self._known_sources = {}
            for name, host in self._seen.hosts.items():
                if host.silent_since is None and host.isolated:
                    for reference, image in host.images.items():
                        if image.present:
                            self._known_sources.setdefault(reference, []).append(name)
        return self._known_sources


def _has_image(host: HostSeen | None, reference: str) -> bool:
    image = None if host is None else host.images.get(reference)
    return image is not None and image.present


def _builder_of(experiment: Experiment) -> HostName | None:
    return None if experiment.build is None else experiment.build.host
