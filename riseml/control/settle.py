"""Update the record of each job from what one pass saw of its host."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from riseml.base.names import HostName
from riseml.base.states import TERMINAL, JobDuty, Reason, State
from riseml.control.actions import Action, CopyData, EnsureImage, FetchData, PrepareHost, StartGang, StartJob
from riseml.control.images import (
    ImageLocations,
    find_builder,
    find_next_image,
    find_next_reference,
    find_starting_jobs,
    is_present,
)
from riseml.control.observation import Observation
from riseml.control.saving import find_filling
from riseml.control.times import HostClocks, date_end, date_loss, date_start
from riseml.job_programs import gang_rules
from riseml.model import ActionFailure, ContainerObservation, Experiment, HostObservation, Image, Job

GIVE_UP_STARTING = timedelta(minutes=5)
"""How long the tries of a start may fail for temporary reasons before the job fails."""

GOOD_ENDS = frozenset({Reason.NO_LONGER_NEEDED, Reason.STOPPED_EARLY})
"""Reasons to end a job that make its end a good one, whatever its exit code."""


def settle_jobs(experiment: Experiment, observation: Observation, images: ImageLocations) -> Experiment:
    """Return the experiment with an up-to-date record of every job."""
    experiment = note_shells(experiment, observation)
    clocks = HostClocks(experiment, observation)
    jobs = [
        _settle_build(experiment, job, observation) if job.part is JobDuty.PREPARES else _settle_job(job, clocks)
        for job in experiment.jobs
    ]
    return _settle_images(with_jobs(experiment, jobs), observation, images)


def note_shells(experiment: Experiment, observation: Observation) -> Experiment:
    """Return the experiment with the shell that each job has reported, also when the report comes after its end."""
    return with_jobs(experiment, [_note_shell(experiment, job, observation) for job in experiment.jobs])


def with_jobs(experiment: Experiment, jobs: Sequence[Job]) -> Experiment:
    """Return the experiment with these job records; the same object when no record changed."""
    if all(new is old for new, old in zip(jobs, experiment.jobs, strict=True)):
        return experiment
    return replace(experiment, jobs=tuple(jobs))


def choose_builder(experiment: Experiment, observation: Observation) -> Experiment:
    """Return the experiment with the host that builds its environments: the first of those that answer and have the
    most of the images. Among equals, drained hosts come last: an image may exist on a drained host alone.

    Another host replaces one that falls silent before the build begins, that is lost, or that cannot get the base image
    when another host has it.
    """
    build = experiment.build
    if build is None or build.state in TERMINAL:
        return experiment
    images = (
        experiment.images
        if _needs_builder(build, observation)
        else _find_images_elsewhere(experiment, build, observation)
    )
    if not images:
        return experiment
    answering = sorted(
        (-sum(_has_image(host, image) for image in images), not host.taking, name)
        for name, host in observation.hosts.items()
        if host.silent_since is None
    )
    if not answering:
        return experiment
    chosen = replace(Job(build.name, build.part, build.resources), host=answering[0][-1])
    return with_jobs(experiment, [chosen if job is build else job for job in experiment.jobs])


def _find_images_elsewhere(experiment: Experiment, build: Job, observation: Observation) -> tuple[Image, ...]:
    """Return the image that the builder could not get and another answering host has; an empty tuple when there is
    none."""
    host = find_builder(experiment, observation)
    image = None if host is None else find_next_image(experiment, host, observation)
    if host is None or build.host is None or image is None:
        return ()
    problem = observation.problems.get(
        EnsureImage(build.host, experiment.id, find_next_reference(experiment, image, host))
    )
    if problem is None or not problem.image_missing:
        return ()
    answering = (other for other in observation.hosts.values() if other.silent_since is None)
    return (image,) if any(_has_image(other, image) for other in answering) else ()


def _has_image(host: HostObservation, image: Image) -> bool:
    return is_present(host, image.base) or is_present(host, image.reference)


def _needs_builder(build: Job, observation: Observation) -> bool:
    if build.host is None:
        return True
    host = observation.hosts.get(build.host)
    if host is None:
        since = build.unseen_since
        return build.state is State.CREATED or (since is not None and observation.is_over(since))
    if host.silent_since is None:
        return False
    return build.state is State.CREATED or observation.is_lost(host)


def signal_name(exit_code: int | None) -> str | None:
    """Return `SIGKILL` for 137; None for an exit code that stands for no signal."""
    if exit_code is None or not 128 < exit_code <= 128 + 64:
        return None
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return None


def _settle_build(experiment: Experiment, job: Job, observation: Observation) -> Job:
    if job.state in TERMINAL or job.host is None:
        return job
    host = observation.hosts.get(job.host)
    if host is None:
        return replace(job, unseen_since=observation.now) if job.unseen_since is None else job
    if job.unseen_since is not None:
        return _settle_build(experiment, replace(job, unseen_since=None), observation)
    if host.silent_since is not None:
        return job
    missing = find_next_image(experiment, host, observation)
    if missing is not None:
        reference = find_next_reference(experiment, missing, host)
        return _settle_image(job, EnsureImage(job.host, experiment.id, reference), observation)
    if experiment.plan.policy.data and experiment.id not in observation.fetched:
        return _settle_data(experiment, job, job.host, observation)
    reason = Reason.CACHED if job.started_at is None else Reason.COMPLETED
    return replace(job, state=State.FINISHED, reason=reason, message="", exit_code=0, ended_at=observation.now)


def _settle_image(job: Job, action: EnsureImage, observation: Observation) -> Job:
    """Return the record of a build whose next environment is missing on the host."""
    image = observation.hosts[action.host].images.get(action.reference)
    if image is None:
        return job
    problem = observation.problems.get(action)
    if problem is not None and _is_final(problem):
        if problem.image_missing and _was_asked_earlier(action.reference, observation):
            return job
        return _settle_failed_build(job, problem, observation)
    if action in observation.busy:
        return _mark_build(replace(job, message="") if job.message else job, State.RUNNING, observation)
    if image.building:
        waits = (State.PENDING, Reason.WAITING_FOR_IMAGE)
        return job if (job.state, job.reason) == waits else replace(job, state=waits[0], reason=waits[1])
    return _mark_build(job, State.STARTING, observation)


def _was_asked_earlier(reference: str, observation: Observation) -> bool:
    """Return True when a host's answer is older than the request for an image: the next answer may name the image.

    A host that was silent for a while first answers the request of an earlier pass.
    """
    return any(host.silent_since is None and reference not in host.images for host in observation.hosts.values())


def _settle_data(experiment: Experiment, job: Job, host: HostName, observation: Observation) -> Job:
    """Return the record of a build that has all environments and waits for its data."""
    action = FetchData(host, experiment.id)
    problem = observation.problems.get(action)
    if problem is not None and _is_final(problem):
        failed = replace(job, state=State.FAILED, reason=Reason.DATA_FAILED, message=problem.message)
        return replace(failed, exit_code=1, ended_at=observation.now)
    state = State.RUNNING if action in observation.busy else State.STARTING
    message = "" if problem is None else problem.message
    if (job.state, job.reason, job.message) == (state, Reason.WAITING_FOR_DATA, message):
        return job
    started = job.started_at or observation.now
    return replace(job, state=state, reason=Reason.WAITING_FOR_DATA, message=message, started_at=started)


def _settle_failed_build(job: Job, problem: ActionFailure, observation: Observation) -> Job:
    """Return the record of a build that failed; it waits instead for a silent host that may have its base image."""
    silent = _find_silent_host(observation)
    if not problem.image_missing or silent is None:
        return replace(
            job,
            state=State.FAILED,
            reason=Reason.BUILD_FAILED,
            message=problem.message,
            exit_code=1,
            ended_at=observation.now,
        )
    message = f"host {silent} does not answer now and may have the image"
    waits = (State.PENDING, Reason.WAITING_FOR_IMAGE, message)
    if (job.state, job.reason, job.message) == waits:
        return job
    return replace(job, state=waits[0], reason=waits[1], message=message)


def _find_silent_host(observation: Observation) -> HostName | None:
    """Return a host that is silent and not yet lost: it may have any image."""
    silent = (name for name, host in sorted(observation.hosts.items()) if host.silent_since is not None)
    return next((name for name in silent if not observation.is_lost(observation.hosts[name])), None)


def _mark_build(job: Job, state: State, observation: Observation) -> Job:
    """Return the record of a build that runs or is about to run."""
    if job.state is state and job.reason is Reason.PREPARE and job.started_at is not None:
        return job
    return replace(job, state=state, reason=Reason.PREPARE, started_at=job.started_at or observation.now)


def _settle_job(job: Job, clocks: HostClocks) -> Job:
    experiment = clocks.experiment
    observation = clocks.observation
    if job.host is None or job.state in TERMINAL:
        return job
    host = observation.hosts.get(job.host)
    if host is None:
        return _settle_unseen(experiment, job, job.host, observation)
    if job.unseen_since is not None:
        job = replace(job, unseen_since=None)
    if host.silent_since is not None:
        if not observation.is_lost(host):
            return job
        lost = date_loss(experiment, job, observation)
        return _end_without_exit(lost, observation, State.FAILED, Reason.HOST_LOST, f"host {job.host} is silent")
    return _settle_on_host(job, host, clocks)


def _settle_on_host(job: Job, host: HostObservation, clocks: HostClocks) -> Job:
    """Return the record of a job whose host answers."""
    experiment = clocks.experiment
    observation = clocks.observation
    container = host.containers.get(experiment.key_of(job))
    if container is None:
        return _settle_absent(experiment, job, host, observation)
    if container.late:
        return job
    if container.running:
        return _settle_running(job, container, clocks)
    if container.started:
        return _settle_exit(job, container, clocks)
    if container.error:
        reason = container.ending or Reason.START_FAILED
        return _end_without_exit(job, observation, State.FAILED, reason, container.error)
    return _settle_queued(_settle_absent(experiment, job, host, observation), container.waits)


def _settle_running(job: Job, container: ContainerObservation, clocks: HostClocks) -> Job:
    if job.state is State.RUNNING and job.reason is Reason.RUNNING and job.started_at is not None:
        return replace(job, message="") if job.message else job
    return replace(
        date_start(job, container, clocks),
        state=State.RUNNING,
        reason=Reason.RUNNING,
        message="",
        address=container.address or job.address,
        port=container.port or job.port,
    )


def _note_shell(experiment: Experiment, job: Job, observation: Observation) -> Job:
    """Return the record of a job with the shell that it has reported."""
    host = None if job.host is None else observation.hosts.get(job.host)
    container = None if host is None else host.containers.get(experiment.key_of(job))
    return job if container is None or container.shell in (None, job.shell) else replace(job, shell=container.shell)


def _settle_unseen(experiment: Experiment, job: Job, host: HostName, observation: Observation) -> Job:
    """Return the record of a job whose host is missing in the observation; it counts as silent from the first such pass
    on.

    A host of the pool counts as silent for as long as this server has asked it. The record cannot say that: it does not
    know how long the machine slept, or no server ran.
    """
    if job.unseen_since is None:
        return replace(job, unseen_since=observation.now)
    asked_since = observation.unseen.get(host)
    if not observation.is_over(asked_since or job.unseen_since):
        return job
    why = "is no longer in the pool" if asked_since is None else "has not answered since the server started"
    lost = date_loss(experiment, job, observation)
    return _end_without_exit(lost, observation, State.FAILED, Reason.HOST_LOST, f"host {host} {why}")


def _settle_images(experiment: Experiment, observation: Observation, images: ImageLocations) -> Experiment:
    """Return the experiment with each starting job marked: it waits for its environment, or it has failed because its
    host cannot get it.
    """
    if experiment.placed_at is None or not any(job.state is State.STARTING for job in experiment.jobs):
        return experiment
    starting = find_starting_jobs(experiment, observation)
    if not starting:
        return experiment
    waits = not images.are_ready(experiment, starting)
    problems = _find_image_problems(experiment, starting, observation, images) if waits else {}
    reason = Reason.WAITING_FOR_IMAGE if waits else Reason.PLACED
    return with_jobs(
        experiment,
        [
            _set_start_reason(
                job, reason, problems.get((job.host, experiment.image_of(job.name).reference)), observation
            )
            if job in starting
            else job
            for job in experiment.jobs
        ],
    )


def _find_image_problems(
    experiment: Experiment, starting: list[Job], observation: Observation, images: ImageLocations
) -> dict[tuple[HostName | None, str], str]:
    """Return why a host cannot get an environment, by the name of the host and the reference of the image."""
    transfers = images.transfers(experiment, starting)
    problems = {(action.host, action.reference): observation.problems.get(action) for action in transfers}
    waits = _find_silent_host(observation) is not None
    return {
        key: problem.message
        for key, problem in problems.items()
        if problem is not None and _is_final(problem) and not (problem.image_missing and waits)
    }


def _set_start_reason(job: Job, reason: Reason, problem: str | None, observation: Observation) -> Job:
    if problem is not None:
        return _end_without_exit(job, observation, State.FAILED, Reason.START_FAILED, problem)
    waited = job.reason is Reason.WAITING_FOR_IMAGE
    if waited == (reason is Reason.WAITING_FOR_IMAGE):  # the reason RETRY stays until the job waits for something
        return job
    return replace(job, reason=reason)


def _settle_absent(experiment: Experiment, job: Job, host: HostObservation, observation: Observation) -> Job:
    """Return the record of a job without a started container: it was removed from outside, cannot start, or starts
    later.
    """
    if job.state is State.RUNNING:
        lost = date_loss(experiment, job, observation)
        return _end_without_exit(lost, observation, State.FAILED, Reason.VANISHED, f"it is gone from host {job.host}")
    if job.state is not State.STARTING or job.host is None:
        return job
    start: Action = StartJob(job.host, experiment.key_of(job))
    if host.queue is not None:
        start = StartGang(job.host, experiment.id, job.attempt)
    needed = _list_needed(experiment, job.host, start, observation)
    problems = [observation.problems[action] for action in needed if action in observation.problems]
    if host.queue is not None:  # the controller of the cluster may start it later
        problems = [problem for problem in problems if problem.permanent]
    final = next(filter(_is_final, problems), None)
    if final is not None:
        return _end_without_exit(job, observation, State.FAILED, Reason.START_FAILED, final.message)
    if job.ending is not None and start not in observation.busy:
        return _end_without_exit(job, observation, State.FAILED, Reason.VANISHED, "")
    return job


def _list_needed(experiment: Experiment, host: HostName, start: Action, observation: Observation) -> list[Action]:
    """Return the actions that a job on a host needs to begin, with its own start."""
    filling = find_filling(experiment, observation)
    shared = {host, experiment.network_host or host}
    return [
        start,
        CopyData(host, experiment.id),
        *([] if filling is None else [filling]),
        *(PrepareHost(name, experiment.id, experiment.subnet) for name in sorted(shared)),
    ]


def _settle_queued(job: Job, waits: str) -> Job:
    """Return the record of a job with the reason why it waits in the queue of its host, if it does."""
    if not waits or job.state is not State.STARTING or (job.reason, job.message) == (Reason.IN_QUEUE, waits):
        return job
    return replace(job, reason=Reason.IN_QUEUE, message=waits)


def _settle_exit(job: Job, container: ContainerObservation, clocks: HostClocks) -> Job:
    code = container.exit_code or 0
    job = replace(date_end(job, container, clocks), exit_code=code, oom=container.oom)
    ending = job.ending or container.ending
    if ending is not None:
        state = State.FINISHED if ending in GOOD_ENDS else State.KILLED
        return replace(job, state=state, reason=ending, message="")
    if not gang_rules.fails(job.part.value, code, container.error):  # it may exit with 0 after its host's SIGTERM
        warning = "one of its processes ran out of memory on the way" if container.oom else ""
        return replace(job, state=State.FINISHED, reason=Reason.COMPLETED, message=warning)
    message = container.error or describe_exit(code, oom=container.oom)
    return replace(job, state=State.FAILED, reason=_find_exit_reason(job, container), message=message)


def describe_exit(code: int, *, oom: bool) -> str:
    """Return an exit code in words: `exit code 137 (SIGKILL), out of memory`."""
    name = signal_name(code)
    meaning = name or {126: "command cannot be run", 127: "command not found"}.get(code)
    text = f"exit code {code} ({meaning})" if meaning else f"exit code {code}"
    if oom:
        return f"{text}, out of memory"
    # An engine reports nothing when the whole host is out of memory, and may miss a job that has just begun.
    return f"{text}: sent by another process, or the job or its host is out of memory" if name == "SIGKILL" else text


def _find_exit_reason(job: Job, container: ContainerObservation) -> Reason:
    if container.error:
        return Reason.ENGINE_STOPPED
    if job.part is JobDuty.SERVES:
        return Reason.SERVICE_ENDED
    if container.oom:
        return Reason.OUT_OF_MEMORY
    return Reason.SIGNAL if signal_name(container.exit_code) else Reason.EXIT_CODE


def _is_final(problem: ActionFailure) -> bool:
    """Return True when no further try follows. A try that runs now, or waits for its host, is not a failure yet."""
    return problem.permanent or problem.lasted >= GIVE_UP_STARTING


def _end_without_exit(job: Job, observation: Observation, state: State, reason: Reason, message: str) -> Job:
    """Return the record of a job that ends without an exit code: now, unless it has its end already. A job that had a
    reason to end gets that reason.
    """
    if job.ending is not None and state is State.FAILED:
        state = State.FINISHED if job.ending in GOOD_ENDS else State.KILLED
        reason = job.ending
        message = ""
    return replace(job, state=state, reason=reason, message=message, ended_at=job.ended_at or observation.now)
