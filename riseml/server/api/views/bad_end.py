"""The explanation of a failed experiment for users: the last lines of the job that caused it, and advice."""

from __future__ import annotations

from collections.abc import Sequence

from riseml.base.errors import LogUnreadable
from riseml.base.names import experiment_name
from riseml.base.states import Part, Reason, State
from riseml.control.advice.advise import advise
from riseml.control.advice.known_failure import FailedJob
from riseml.control.advice.last_lines import PRINTED_LINES, choose_last_lines, drop_frames
from riseml.control.rollup import find_failed_job
from riseml.model import Experiment, Job
from riseml.server.api.views.record_views import NO_BAD_END, BadEnd
from riseml.server.written_lines import is_about_files
from riseml.store.logs.log_store import LogStore

_MOST_OTHERS = 8  # jobs whose logs are searched for the cause of a lost connection
_SAID_BY_ENGINE = frozenset({Reason.START_FAILED, Reason.BUILD_FAILED, Reason.DATA_FAILED, Reason.ENGINE_STOPPED})
_STOPPED = frozenset({None, 0, 128 + 9, 128 + 15})  # exit codes of jobs that the server stopped


def explain_bad_end(experiment: Experiment, logs: LogStore) -> BadEnd:
    """Return the last lines and the advice of an experiment that failed because of a job; empty for any other."""
    cause = find_failed_job(experiment)
    first = next((job for job in experiment.jobs if job.name == cause), None)
    if first is None:
        return NO_BAD_END
    printed = _read_lines(experiment, first, logs)
    further_jobs = [job for job in experiment.gang if job is not first and _failed_by_itself(job)][:_MOST_OTHERS]
    advice = advise(
        _describe_job(experiment, first, printed),
        lambda: [_describe_job(experiment, job, _read_lines(experiment, job, logs)) for job in further_jobs],
    )
    return BadEnd(choose_last_lines(printed), advice)


def _failed_by_itself(job: Job) -> bool:
    """Return True when the job failed, and not because the server stopped it."""
    return job.state is State.FAILED or job.oom or job.exit_code not in _STOPPED


def _read_lines(experiment: Experiment, job: Job, logs: LogStore) -> list[str]:
    try:
        printed = logs.read_last_lines(experiment.key_of(job), PRINTED_LINES)
    except LogUnreadable as error:
        return [f"[riseml: {error.message}]"]
    return [line.text.decode("utf-8", "replace") for line in printed if not is_about_files(line)]


def _describe_job(experiment: Experiment, job: Job, printed: Sequence[str]) -> FailedJob:
    planned = next((planned_job for planned_job in experiment.plan.jobs if planned_job.name == job.name), None)
    return FailedJob(
        name=f"{experiment_name(experiment.number, experiment.sub)}.{job.name}",
        reason=Reason.OUT_OF_MEMORY if job.oom else job.reason,
        exit_code=None if job.part is Part.PREPARES else job.exit_code,  # riseml itself chose the exit code of a build
        lines=(*drop_frames(printed), *_list_said(job)),
        limit=None if planned is None else planned.limits.mem,
        mem=job.resources.mem,
    )


def _list_said(job: Job) -> list[str]:
    """Return the messages of the engine about a job that could not run."""
    return job.message.splitlines() if job.reason in _SAID_BY_ENGINE else []
