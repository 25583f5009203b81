"""Fold what was seen into what we know: the new record of each job."""

from __future__ import annotations

import signal
from dataclasses import replace
from datetime import timedelta

from riseml.control.actions import EnsureImage, Prepare, Start
from riseml.control.observation import Observation
from riseml.model import ContainerSeen, Experiment, HostSeen, Job, JobKey, Problem
from riseml.states import TERMINAL, Part, Reason, State

GIVE_UP_STARTING = timedelta(minutes=5)
"""How long a start may fail for reasons that could pass before the job is given up."""

_GOOD_ENDS = frozenset({Reason.NO_LONGER_NEEDED})


def settle(experiment: Experiment, seen: Observation) -> Experiment:
    """The experiment with every job's record brought up to date."""
    jobs = tuple(
        _settle_build(experiment, job, seen) if job.part is Part.PREPARES else _settle_job(experiment, job, seen)
        for job in experiment.jobs
    )
    return replace(experiment, jobs=jobs)


def key_of(experiment: Experiment, job: Job) -> JobKey:
    """The identity of a job's container in its current attempt."""
    return JobKey(experiment.id, job.name, job.attempt)


def signal_name(exit_code: int | None) -> str | None:
    """`SIGKILL` for 137; None when the code tells of no signal."""
    if exit_code is None or not 128 < exit_code <= 128 + 64:
        return None
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return None


def _settle_build(experiment: Experiment, job: Job, seen: Observation) -> Job:
    if job.state in TERMINAL or job.host is None or job.host not in seen.hosts:
        return job
    host = seen.hosts[job.host]
    if host.silent_since is not None:
        return job
    reference = experiment.plan.image.reference
    image = host.images.get(reference)
    if image is None:
        return job
    if image.present:
        reason = Reason.CACHED if job.started_at is None else Reason.COMPLETED
        return replace(job, state=State.FINISHED, reason=reason, message="", exit_code=0, ended_at=seen.now)
    action = EnsureImage(job.host, experiment.id, reference)
    problem = seen.problems.get(action)
    if problem is not None and _hopeless(problem, seen):
        return replace(
            job, state=State.FAILED, reason=Reason.BUILD_FAILED, message=problem.message, exit_code=1, ended_at=seen.now
        )
    if action in seen.busy:
        return replace(
            job, state=State.RUNNING, reason=Reason.PREPARE, message="", started_at=job.started_at or seen.now
        )
    if image.building:
        return replace(job, state=State.PENDING, reason=Reason.WAITING_FOR_IMAGE)
    return replace(job, state=State.STARTING, reason=Reason.PREPARE, started_at=job.started_at or seen.now)


def _settle_job(experiment: Experiment, job: Job, seen: Observation) -> Job:
    if job.host is None or job.state in TERMINAL or job.host not in seen.hosts:
        return job
    host = seen.hosts[job.host]
    if host.silent_since is not None:
        lost = (seen.now - host.silent_since).total_seconds() >= seen.lost_after
        return _end(job, seen, State.FAILED, Reason.HOST_LOST, f"host {job.host} is silent") if lost else job
    found = host.containers.get(key_of(experiment, job))
    if found is not None and found.error and not found.started:
        return _end(job, seen, State.FAILED, Reason.START_FAILED, found.error)
    if found is None or not found.started:
        return _settle_absent(experiment, job, host, seen)
    if found.exit_code is None:
        return replace(
            job,
            state=State.RUNNING,
            reason=Reason.RUNNING,
            message="",
            started_at=job.started_at or found.started_at or seen.now,
        )
    return _settle_exit(job, found, seen)


def _settle_absent(experiment: Experiment, job: Job, host: HostSeen, seen: Observation) -> Job:
    """No container that was ever started: it was removed behind our back, cannot be started, or is still to come."""
    if job.state is State.RUNNING:
        return _end(job, seen, State.FAILED, Reason.VANISHED, f"its container is gone from host {job.host}")
    if job.state is not State.STARTING or job.host is None:
        return job
    start = Start(job.host, key_of(experiment, job))
    for action in (start, Prepare(job.host, experiment.id, experiment.subnet)):
        problem = seen.problems.get(action)
        if problem is not None and _hopeless(problem, seen):
            return _end(job, seen, State.FAILED, Reason.START_FAILED, problem.message)
    if job.ending is not None and start not in seen.busy:
        return _end(job, seen, State.FAILED, Reason.VANISHED, "")
    return job


def _settle_exit(job: Job, found: ContainerSeen, seen: Observation) -> Job:
    code = found.exit_code or 0
    job = replace(
        job,
        exit_code=code,
        oom=found.oom,
        started_at=job.started_at or found.started_at,
        ended_at=found.finished_at or seen.now,
    )
    if job.ending is not None:
        state = State.FINISHED if job.ending in _GOOD_ENDS else State.KILLED
        return replace(job, state=state, reason=job.ending, message="")
    if job.part is Part.SERVES:
        return replace(job, state=State.FAILED, reason=Reason.SERVICE_ENDED, message=describe_exit(code, oom=found.oom))
    if code == 0:
        warning = "one of its processes ran out of memory on the way" if found.oom else ""
        return replace(job, state=State.FINISHED, reason=Reason.COMPLETED, message=warning)
    message = found.error or describe_exit(code, oom=found.oom)
    return replace(job, state=State.FAILED, reason=_exit_reason(found), message=message)


def describe_exit(code: int, *, oom: bool) -> str:
    """An exit code in words: `exit code 137 (SIGKILL), out of memory`."""
    name = signal_name(code)
    meaning = name or {126: "command cannot be run", 127: "command not found"}.get(code)
    text = f"exit code {code} ({meaning})" if meaning else f"exit code {code}"
    return f"{text}, out of memory" if oom else text


def _exit_reason(found: ContainerSeen) -> Reason:
    if found.error:
        return Reason.ENGINE_STOPPED
    if found.oom:
        return Reason.OUT_OF_MEMORY
    return Reason.SIGNAL if signal_name(found.exit_code) else Reason.EXIT_CODE


def _hopeless(problem: Problem, seen: Observation) -> bool:
    return problem.permanent or seen.now - problem.since >= GIVE_UP_STARTING


def _end(job: Job, seen: Observation, state: State, reason: Reason, message: str) -> Job:
    """A job that ends without an exit code of its own; one that was being ended anyway has just been ended."""
    if job.ending is not None and state is State.FAILED:
        state = State.FINISHED if job.ending in _GOOD_ENDS else State.KILLED
        reason, message = job.ending, ""
    return replace(job, state=state, reason=reason, message=message, ended_at=seen.now)
