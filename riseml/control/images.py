"""Which hosts have the environments of a gang, and which actions copy them to the other hosts.

Most experiments have one environment. With roles of the user's own there may be more: one host makes them one after
another, and each is copied to the hosts that have a job of its roles. No job of a gang starts before every host of it
has what its jobs need.

A base image is named by a tag, and a tag may move at any time. So each tag is resolved once, on the host that builds,
before the gang gets its place. The record keeps the resolved image, and every host and every attempt runs that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from riseml.base.names import HostName
from riseml.base.states import TERMINAL, JobDuty, State
from riseml.control.actions import CopyImage, EnsureImage
from riseml.control.observation import Observation
from riseml.model import Experiment, HostObservation, Image, Job, JobKey, Resolved, World, resolve_base


def awaited_images(world: World, resolved: Resolved = ()) -> frozenset[str]:
    """Return the references of the environments that some experiment waits for: the loop asks every host for them.

    Args:
        world: the records.
        known: the last resolved image of each tag. The loop asks for the environments on top of it in the same pass as
        for the tags, so that a tag which has not moved costs no further pass.
    """
    waiting = [
        experiment for experiment in world.experiments if experiment.state not in TERMINAL and _needs_image(experiment)
    ]
    images = [(experiment, image) for experiment in waiting for image in experiment.images]
    unresolved = [image for experiment, image in images if _lacks_resolution(experiment, image)]
    references = (*(image for _, image in images), *(resolve_base(image, resolved) for image in unresolved))
    return frozenset((*(image.reference for image in references), *(image.base for image in unresolved)))


def list_resolved(hosts: Iterable[HostObservation]) -> Resolved:
    """Return the resolved image of each tag, as the hosts have it."""
    return tuple(
        (base, observation.resolved)
        for host in hosts
        for base, observation in host.images.items()
        if observation.resolved
    )


def resolve_image(experiment: Experiment, observation: Observation) -> Experiment:
    """Return the experiment with the resolved base images of the host that builds, once the observation has them.

    Processes have no images: nothing is resolved there.
    """
    build = experiment.build
    if build is None or build.state in TERMINAL:
        return experiment
    host = find_builder(experiment, observation)
    if host is None or host.silent_since is not None:
        return experiment
    images = tuple(
        (base, tag.resolved)
        for base in dict.fromkeys(image.base for image in experiment.images if _lacks_resolution(experiment, image))
        if (tag := host.images.get(base)) is not None and tag.present and tag.resolved
    )
    return replace(experiment, resolved=(*experiment.resolved, *images)) if images else experiment


def find_builder(experiment: Experiment, observation: Observation) -> HostObservation | None:
    """Return the host that builds the environments; None: no host is chosen, or the observation lacks it."""
    name = _builder_of(experiment)
    return None if name is None else observation.hosts.get(name)


def find_next_image(experiment: Experiment, host: HostObservation, observation: Observation) -> Image | None:
    """Return the environment that the build makes next on a host; None when none is missing.

    The host skips an environment that another host already has: with several environments, each may be on another host.
    """
    images = experiment.images
    shared = len(images) > 1 and host.isolated
    for image in images:
        elsewhere = (
            shared and not _lacks_resolution(experiment, image) and _is_present_anywhere(image.reference, observation)
        )
        if not elsewhere and not is_present(host, image.reference):
            return image
    return None


def find_next_reference(experiment: Experiment, image: Image, host: HostObservation) -> str:
    """Return the reference that this environment needs next on a host: the base, to resolve its tag, or its own."""
    if _lacks_resolution(experiment, image) and host.isolated and not is_present(host, image.base):
        return image.base
    return image.reference


def choose_image(experiment: Experiment, reference: str) -> Image:
    """Return the image to make for a reference: a whole environment, or a base alone.

    Args:
        experiment: the one that waits for the image.
        reference: what `find_next_reference` returned for the host.
    """
    return next((image for image in experiment.images if image.reference == reference), Image(reference))


def is_present(host: HostObservation | None, reference: str) -> bool:
    """Return True when a host has an environment, as this pass saw it."""
    image = None if host is None else host.images.get(reference)
    return image is not None and image.present


def _is_present_anywhere(reference: str, observation: Observation) -> bool:
    return any(host.silent_since is None and is_present(host, reference) for host in observation.hosts.values())


def _lacks_resolution(experiment: Experiment, image: Image) -> bool:
    build = experiment.build
    return not image.resolved and build is not None and build.state not in TERMINAL


def _needs_image(experiment: Experiment) -> bool:
    if experiment.state is State.PENDING:  # when it gets a place, the loop asks the hosts for the image again
        return False
    return any(
        job.state not in TERMINAL if job.part is JobDuty.PREPARES else job.state is State.STARTING
        for job in experiment.jobs
    )


def find_starting_jobs(experiment: Experiment, observation: Observation) -> list[Job]:
    """Return the jobs that have a place, no container yet, and no reason to end."""
    return [
        job
        for job in experiment.gang
        if job.state is State.STARTING
        and job.ending is None
        and job.host is not None
        and not _has_container(experiment.key_of(job), observation.hosts.get(job.host))
    ]


def _has_container(key: JobKey, host: HostObservation | None) -> bool:
    return host is not None and key in host.containers


class ImageLocations:
    """Which hosts have which environments, as one pass saw it."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation
        self._known_sources: dict[str, list[HostName]] | None = None
        self._pending = frozenset(
            (action.host, action.reference)
            for action in observation.busy
            if isinstance(action, EnsureImage | CopyImage)
        )

    def are_ready(self, experiment: Experiment, jobs: list[Job]) -> bool:
        """Return True when the host of each of these jobs has the environment of the job."""
        return all(self.is_ready(experiment, job) for job in jobs if job.host is not None)

    def is_ready(self, experiment: Experiment, job: Job) -> bool:
        """Return True when the host of a job has its environment."""
        host = None if job.host is None else self._observation.hosts.get(job.host)
        return is_present(host, experiment.image_of(job.name).reference)

    def transfers(self, experiment: Experiment, jobs: list[Job]) -> Iterator[EnsureImage | CopyImage]:
        """Yield the actions that copy or build the environments of these jobs on hosts that answer and lack them."""
        needed: dict[str, set[HostName]] = {}
        for job in jobs:
            if job.host is not None:
                needed.setdefault(experiment.image_of(job.name).reference, set()).add(job.host)
        for reference, hosts in needed.items():
            yield from self._transfer(experiment, reference, hosts)

    def _transfer(
        self, experiment: Experiment, reference: str, hosts: set[HostName]
    ) -> Iterator[EnsureImage | CopyImage]:
        lacking = sorted(host for host in hosts if self._lacks(host, reference))
        makers: list[HostName] = []
        for host in lacking:
            if not self._observation.hosts[host].isolated:
                yield EnsureImage(host, experiment.id, reference)
                continue
            source = self._choose_source(experiment, reference, host)
            if source is not None:
                yield CopyImage(host, experiment.id, reference, source)
            else:
                makers.append(host)
        if makers:  # no host has it any more: one host builds it again, and the others copy it from there
            builder = _builder_of(experiment)
            yield EnsureImage(builder if builder in makers else makers[0], experiment.id, reference)

    def is_pending(self, action: EnsureImage | CopyImage) -> bool:
        """Return True when an action that puts this environment on its host is pending, for this or another
        experiment."""
        return (action.host, action.reference) in self._pending

    def _lacks(self, host: HostName, reference: str) -> bool:
        lender = self._observation.hosts.get(host)
        if lender is None or lender.silent_since is not None:
            return False
        image = lender.images.get(reference)
        return image is not None and not image.present

    def _choose_source(self, experiment: Experiment, reference: str, host: HostName) -> HostName | None:
        """Return a host that answers and has the environment: one with the fewest failures; of equals, the builder."""
        builder = _builder_of(experiment)

        def rank(source: HostName) -> tuple[bool, int, bool, HostName]:
            problem = self._observation.problems.get(CopyImage(host, experiment.id, reference, source))
            failures = (False, 0) if problem is None else (problem.permanent, problem.count)
            return (*failures, source != builder, source)

        return min(self._find_sources().get(reference, ()), key=rank, default=None)

    def _find_sources(self) -> Mapping[str, list[HostName]]:
        if self._known_sources is None:
            self._known_sources = {}
            for name, host in self._observation.hosts.items():
                if host.silent_since is None and host.isolated:
                    for reference, image in host.images.items():
                        if image.present:
                            self._known_sources.setdefault(reference, []).append(name)
        return self._known_sources


def _builder_of(experiment: Experiment) -> HostName | None:
    return None if experiment.build is None else experiment.build.host
