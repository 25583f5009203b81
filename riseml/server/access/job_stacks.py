"""The stacks of the running jobs of an experiment, all read at nearly the same moment."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from riseml.base.errors import Conflict, Refused, RisemlError
from riseml.base.names import HostName, experiment_name
from riseml.base.records import dataclass
from riseml.base.states import State
from riseml.diagnosis.stacks import ProcessStacks
from riseml.executors.base import NotThere
from riseml.executors.capabilities import StackReader
from riseml.executors.job_stacks import ProfileRequest as ProfileRequest
from riseml.executors.job_stacks import RecordedProfile as RecordedProfile
from riseml.executors.job_stacks import StackRequest as StackRequest
from riseml.model import Experiment, Job
from riseml.server.access.job_access import check_running, find_executor
from riseml.server.hosts.host_set import HostSet

_MOST_AT_ONCE = 64  # jobs that are read at the same time
_MOST_FRAMES = 500_000  # of one answer


@dataclass(frozen=True, slots=True)
class JobStacks:
    """What the processes of one job do."""

    title: str  # `4.worker.1`
    host: HostName | None
    processes: tuple[ProcessStacks, ...] = ()
    trouble: str = ""  # why nothing could be read; empty: it could


def read_stacks(
    hosts: HostSet, experiment: Experiment, jobs: Sequence[Job], request: StackRequest
) -> tuple[JobStacks, ...]:
    """Return what the processes of running jobs do.

    Args:
        hosts: of the server.
        experiment: of the jobs.
        jobs: the jobs that were named; those that do not run are left out.
        request: what is read.

    Raises:
        Conflict: none of the jobs runs.
        RisemlError: no job could be read.
    """
    name = experiment_name(experiment.number, experiment.sub)
    running = [job for job in jobs if job.state is State.RUNNING]
    if not running:
        check_running(f"{name}.{jobs[0].name}", name, jobs[0])
        raise Conflict(f"{name} runs no job", f"`riseml status {name}`")
    with ThreadPoolExecutor(min(len(running), _MOST_AT_ONCE), "read-stacks") as pool:
        answers = list(pool.map(lambda job: _try_read_job(hosts, experiment, job, request), running))
    errors = [answer for answer in answers if isinstance(answer, RisemlError)]
    if len(errors) == len(answers):
        raise errors[0]
    read = [
        JobStacks(f"{name}.{job.name}", job.host, trouble=answer.message)
        if isinstance(answer, RisemlError)
        else JobStacks(f"{name}.{job.name}", job.host, answer)
        for job, answer in zip(running, answers, strict=True)
    ]
    return _cut_frames(read)


def record_profile(hosts: HostSet, experiment: Experiment, job: Job, request: ProfileRequest) -> RecordedProfile:
    """Return where a running job is for some seconds. Blocks for so long.

    Raises:
        RisemlError: the job does not run, or could not be recorded.
    """
    name = experiment_name(experiment.number, experiment.sub)
    title = f"{name}.{job.name}"
    check_running(title, name, job)
    try:
        return _find_reader(hosts, job, title).record_profile(experiment.key_of(job), request)
    except NotThere:
        raise Conflict(f"{title} does not run any more", f"`riseml status {name}`") from None


def _try_read_job(
    hosts: HostSet, experiment: Experiment, job: Job, request: StackRequest
) -> tuple[ProcessStacks, ...] | RisemlError:
    """Return the processes of a job, or the error why there are none."""
    name = experiment_name(experiment.number, experiment.sub)
    title = f"{name}.{job.name}"
    try:
        return _find_reader(hosts, job, title).read_stacks(experiment.key_of(job), request)
    except NotThere:
        return Conflict(f"{title} does not run any more", f"`riseml status {name}`")
    except RisemlError as error:
        return error


def _find_reader(hosts: HostSet, job: Job, title: str) -> StackReader:
    reader = find_executor(hosts, job.host, title).capabilities.stacks
    if reader is None:
        raise Refused(f"{job.host}, the host of {title}, does not show what its jobs do")
    return reader


def _cut_frames(jobs: Sequence[JobStacks]) -> tuple[JobStacks, ...]:
    """Return the jobs up to the largest answer; the others say that they are left out."""
    frames = 0
    cut_jobs: list[JobStacks] = []
    for job in jobs:
        frames += sum(len(thread.frames) for process in job.processes for thread in process.threads)
        is_cut = frames > _MOST_FRAMES and cut_jobs
        cut_jobs.append(JobStacks(job.title, job.host, trouble="left out: name it to see it") if is_cut else job)
    return tuple(cut_jobs)
