"""Which job ends an experiment, and how the other jobs end then: the rules of `job_programs.gang_rules`, and what else
ends an experiment.

A companion (`model.Companion`) also ends, as FINISHED, when no client has used it for its time. When the user kills an
experiment, or a search stops its trial, every job is stopped at once.

tests/real/docker/test_endings.py has every ending.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from riseml.base.states import TERMINAL, JobDuty, Reason, State, Wanted
from riseml.control.observation import Observation
from riseml.control.placement.hand_over import takes_whole_gangs
from riseml.control.predecessors import find_lost_predecessor
from riseml.control.saving import awaits_save
from riseml.control.settle import GOOD_ENDS, with_jobs
from riseml.control.times import find_attempt_end, find_time_over
from riseml.job_programs import gang_rules
from riseml.model import Experiment, Job, Verdict
from riseml.planning.plan import make_next_attempt
from riseml.spec.config.types import NanRule, RetryOn, RetryScope, StallRule

_RETRY_ON = {
    Reason.HOST_LOST: RetryOn.HOST_LOST,
    Reason.VANISHED: RetryOn.HOST_LOST,
    Reason.ENGINE_STOPPED: RetryOn.HOST_LOST,
    Reason.EXIT_CODE: RetryOn.EXIT_CODES,
    Reason.SIGNAL: RetryOn.EXIT_CODES,
    Reason.SERVICE_ENDED: RetryOn.EXIT_CODES,
    Reason.OUT_OF_MEMORY: RetryOn.OUT_OF_MEMORY,
}

_LATE_LINES = timedelta(seconds=30)
"""Seconds after the end of a job in which other jobs may still print that they wait for it."""

_EARLY_GRACE = 0.5
"""The most seconds between SIGTERM and SIGKILL of a trial that its search has stopped. Its GPUs are free in a second,
also when it ignores SIGTERM; the search has its values already."""

_FULL_GRACE = 10.0
"""The most seconds between SIGTERM and SIGKILL of a job whose output is too large: it goes on writing meanwhile."""

_ASKED = frozenset({Reason.KILLED_BY_USER, Reason.STOPPED_EARLY})
_PLACE_LOST = frozenset({Reason.HOST_LOST, Reason.ENGINE_STOPPED})
_COUNTS = frozenset({JobDuty.DECIDES, JobDuty.HELPS})


class _VerdictCause(NamedTuple):
    """Something that ends an experiment."""

    at: datetime
    rank: int  # as `gang_rules.Cause.rank`
    verdict: Verdict


def add_verdict(experiment: Experiment, observation: Observation) -> Experiment:
    """Return the experiment with its verdict, once there is one. A verdict never changes, except that a kill or a stop
    cancels a planned retry.
    """
    request = _find_asked_verdict(experiment, observation.now)
    if experiment.verdict is not None:
        if request is not None and experiment.verdict.again:
            return replace(experiment, verdict=request)
        return experiment
    if request is not None:
        return replace(experiment, verdict=request)
    experiment = with_jobs(experiment, [_retry_alone(experiment, job, observation) for job in experiment.jobs])
    verdict = _find_first_cause(experiment, observation)
    return experiment if verdict is None else replace(experiment, verdict=verdict)


def end_jobs(experiment: Experiment, observation: Observation) -> Experiment:
    """Return the experiment with a reason to end for every job that must end after the verdict."""
    verdict = experiment.verdict
    if verdict is None:
        return experiment
    reasons = _find_endings(experiment, verdict, observation.now)
    jobs = [
        job if reason is None or job.ending is not None else _end_job(job, reason, observation.now)
        for job, reason in zip(experiment.jobs, reasons, strict=True)
    ]
    return with_jobs(experiment, jobs)


def conclude_experiment(experiment: Experiment, observation: Observation) -> Experiment:
    """Return the experiment with its final state or its next attempt, once every job has ended."""
    verdict = experiment.verdict
    if verdict is None or experiment.state in TERMINAL or not all(job.state in TERMINAL for job in experiment.jobs):
        return experiment
    if verdict.again and awaits_save(experiment, observation):
        return experiment
    ended = find_attempt_end(experiment, verdict)
    if verdict.again:
        return replace(
            experiment,
            jobs=make_next_attempt(experiment.jobs),
            verdict=None,
            state=State.PENDING,
            reason=Reason.RETRY,
            message=verdict.message,
            placed_at=None,
            waits_since=ended or experiment.waits_since,
        )
    return replace(
        experiment,
        state=verdict.state,
        reason=verdict.reason,
        message=verdict.message,
        ended_at=ended or experiment.waits_since or observation.now,
        waits_since=None,
    )


def find_grace_end(experiment: Experiment, job: Job, verdict: Verdict) -> datetime:
    """Return when the grace of a helper after a good verdict is over."""
    for planned in experiment.plan.jobs:
        if planned.name == job.name:
            return verdict.at + timedelta(seconds=planned.grace)
    return verdict.at


def find_kill_time(experiment: Experiment, job: Job, since: datetime) -> datetime:
    """Return when a job that got SIGTERM at `since` gets SIGKILL."""
    grace = experiment.plan.policy.stop_grace
    if job.ending is Reason.STOPPED_EARLY:
        grace = min(grace, _EARLY_GRACE)
    elif experiment.verdict is not None and experiment.verdict.reason is Reason.OUTPUT_LIMIT:
        grace = min(grace, _FULL_GRACE)
    return since + timedelta(seconds=grace)


def find_left_end(experiment: Experiment, observation: Observation) -> datetime | None:
    """Return when a companion ends unless a client uses it before; None when it does not run, or has no such limit."""
    companion = experiment.plan.companion
    if companion is None or companion.left_after is None or experiment.started_at is None:
        return None
    used = max(experiment.started_at, observation.last_used.get(experiment.id, observation.now))
    return used + timedelta(seconds=companion.left_after)


def _find_asked_verdict(experiment: Experiment, now: datetime) -> Verdict | None:
    """Return the verdict that the user or a search has ordered; None when neither has."""
    match experiment.wanted:
        case Wanted.KILL:
            return Verdict(State.KILLED, Reason.KILLED_BY_USER, now)
        case Wanted.STOP:
            return Verdict(State.FINISHED, Reason.STOPPED_EARLY, now)
        case _:
            return None


def _find_endings(experiment: Experiment, verdict: Verdict, now: datetime) -> list[Reason | None]:
    """Return for each job why it must end now; None: it has ended, or may go on."""
    if verdict.reason in _ASKED:
        return [None if job.state in TERMINAL else verdict.reason for job in experiment.jobs]
    if (verdict.state, verdict.reason) == (State.FINISHED, Reason.NOT_FINITE):
        return [None if job.state in TERMINAL else Reason.NO_LONGER_NEEDED for job in experiment.jobs]
    members = _list_members(experiment, now)
    endings = gang_rules.find_endings(members, verdict.state.value, (now - verdict.at).total_seconds())
    return [Reason(ending) if ending else None for ending in endings]


def _list_members(experiment: Experiment, now: datetime) -> list[gang_rules.Member]:
    """Return the jobs as the rules of gangs see them."""
    graces = {planned.name: planned.grace for planned in experiment.plan.jobs}
    return [
        gang_rules.Member(job.part.value, job.state.value, job.ended_at or now, graces.get(job.name, 0.0))
        for job in experiment.jobs
    ]


def _end_job(job: Job, reason: Reason, now: datetime) -> Job:
    """Return the record of a job that must end: it gets a reason to, or ends here when it has no container."""
    if job.host is not None and job.part is not JobDuty.PREPARES:
        return replace(job, ending=reason, ending_at=now)
    state = State.FINISHED if reason in GOOD_ENDS else State.KILLED
    if reason is Reason.CASCADE and job.part is not JobDuty.PREPARES:
        reason = Reason.NOT_STARTED
    return replace(job, state=state, reason=reason, message="", ended_at=now)


def _retry_alone(experiment: Experiment, job: Job, observation: Observation) -> Job:
    """Return the record of another attempt of a failed job alone, for `retry.scope: role`; the other jobs continue.

    When the host of the job is lost, the whole gang needs another place, and so another attempt. The same holds on a
    host that starts whole gangs.
    """
    retry = experiment.plan.policy.retry
    alone = retry.scope is RetryScope.ROLE and job.part in _COUNTS | {JobDuty.SERVES} and job.state is State.FAILED
    alone = alone and not takes_whole_gangs(job.host, observation)
    if not alone or job.reason in _PLACE_LOST or not _may_retry(experiment, job):
        return job
    fresh = Job(
        job.name, job.part, job.resources, State.STARTING, Reason.RETRY, job.message, job.attempt + 1, shell=job.shell
    )
    return replace(fresh, host=job.host, address=job.address, port=job.port, gpus=job.gpus)


def _may_retry(experiment: Experiment, job: Job) -> bool:
    retry = experiment.plan.policy.retry
    return _RETRY_ON.get(job.reason) in retry.on and job.attempt <= retry.max


def _find_first_cause(experiment: Experiment, observation: Observation) -> Verdict | None:
    """Return the verdict of what happened first; of two at the same instant, that of the job that decides."""
    causes = [cause for find_causes in _CAUSES for cause in find_causes(experiment, observation)]
    return min(causes, key=lambda cause: (cause.at, cause.rank)).verdict if causes else None


def _find_gang_cause(experiment: Experiment, observation: Observation) -> Iterator[_VerdictCause]:
    """Yield the verdict by the rules of gangs: a job has ended, or the experiment has run for `max_duration`."""
    over_at = find_time_over(experiment, observation)
    if over_at is None and not any(_may_decide(job) for job in experiment.jobs):
        return
    cause = gang_rules.find_first_cause(_list_members(experiment, observation.now))
    ended = observation.now if cause is None else _date_cause(experiment, cause)
    if over_at is not None and (cause is None or (over_at, 0) < (ended, cause.rank)):
        message = f"it reached max_duration of {experiment.plan.policy.max_duration:.10g} s"
        yield _VerdictCause(over_at, 0, Verdict(State.FAILED, Reason.MAX_DURATION, observation.now, message=message))
    elif cause is not None and cause.place is not None:
        job = experiment.jobs[cause.place]
        verdict = Verdict(State.FINISHED, Reason.COMPLETED, observation.now, job.name)
        if cause.state != gang_rules.FINISHED:
            again = _may_retry(experiment, job)
            verdict = Verdict(State.FAILED, job.reason, observation.now, job.name, job.message, again)
        yield _VerdictCause(ended, cause.rank, verdict)


def _date_cause(experiment: Experiment, cause: gang_rules.Cause) -> datetime:
    """Return when jobs have decided, by the server's clock; the order of their ends is that of their hosts' clocks."""
    jobs = [experiment.jobs[cause.place or 0]]
    if cause.state == gang_rules.FINISHED:
        jobs = [job for job in experiment.jobs if job.part is JobDuty.DECIDES]
    return max((job.over_at for job in jobs if job.over_at is not None), default=cause.at)


def _may_decide(job: Job) -> bool:
    """Return False for a job that goes on and for a build that succeeded; most passes find no other jobs."""
    return job.state in TERMINAL and (job.part is not JobDuty.PREPARES or job.state is State.FAILED)


def _find_left_companion(experiment: Experiment, observation: Observation) -> Iterator[_VerdictCause]:
    """Yield the verdict of a companion that no client has used for its time."""
    left = find_left_end(experiment, observation)
    if left is not None and observation.now >= left:
        yield _VerdictCause(left, 0, Verdict(State.FINISHED, Reason.LEFT, observation.now))


def _find_lost_predecessor(experiment: Experiment, observation: Observation) -> Iterator[_VerdictCause]:
    """Yield the verdict of an experiment that has waited in vain."""
    verdict = find_lost_predecessor(experiment, observation)
    if verdict is not None:
        yield _VerdictCause(observation.now, 0, verdict)


def _find_large_output(experiment: Experiment, observation: Observation) -> Iterator[_VerdictCause]:
    """Yield the verdict of an experiment whose output is too large."""
    message = observation.outputs_over.get(experiment.id)
    if message is not None:
        verdict = Verdict(State.FAILED, Reason.OUTPUT_LIMIT, observation.now, message=message)
        yield _VerdictCause(observation.now, 0, verdict)


def _find_lost_loss(experiment: Experiment, observation: Observation) -> Iterator[_VerdictCause]:
    """Yield the verdict of an experiment whose loss is not finite any more, where its riseml.yml wants its end then."""
    message = observation.not_finite.get(experiment.id)
    rule = experiment.plan.policy.on.nan
    if message is not None and rule is not NanRule.REMARK:
        state = State.FAILED if rule is NanRule.FAIL else State.FINISHED
        yield _VerdictCause(observation.now, 0, Verdict(state, Reason.NOT_FINITE, observation.now, message=message))


def _find_stuck_jobs(experiment: Experiment, observation: Observation) -> Iterator[_VerdictCause]:
    """Yield the verdicts of jobs that wait for a job which ended some time ago (`_LATE_LINES`).

    The delay is there because the lines of a job that has stopped waiting may reach the server late.
    """
    if not observation.stuck:
        return
    ended = {job.name: job for job in experiment.gang if job.state is State.FINISHED}
    for job in experiment.gang:
        peer = ended.get(observation.stuck.get(experiment.key_of(job), job.name))
        if peer is None or job.state is not State.RUNNING or peer.over_at is None:
            continue
        if observation.now - peer.over_at >= _LATE_LINES:
            message = f"{job.name} waits for {peer.name}, which has ended with exit code {peer.exit_code}"
            verdict = Verdict(State.FAILED, Reason.AWAITED_ENDED, observation.now, job.name, message)
            yield _VerdictCause(observation.now, 0, verdict)


def _find_stall(experiment: Experiment, observation: Observation) -> Iterator[_VerdictCause]:
    """Yield the verdict of an experiment without progress, where its riseml.yml wants its end, or another attempt,
    then."""
    message = observation.stalled.get(experiment.id)
    rule = experiment.plan.policy.stall.then
    if message is not None and rule in (StallRule.RETRY, StallRule.FAIL):
        attempt = max(job.attempt for job in experiment.gang)
        again = rule is StallRule.RETRY and attempt <= experiment.plan.policy.retry.max
        verdict = Verdict(State.FAILED, Reason.STALLED, observation.now, message=message, again=again)
        yield _VerdictCause(observation.now, 0, verdict)


def _find_hang(experiment: Experiment, observation: Observation) -> Iterator[_VerdictCause]:
    """Yield the verdict of an experiment all of whose jobs have been quiet for its `idle_timeout`."""
    if _is_idle(experiment, observation):
        yield _VerdictCause(observation.now, 0, _idle_verdict(experiment, observation))


def _is_idle(experiment: Experiment, observation: Observation) -> bool:
    """Return True when all jobs of an experiment run, and have been quiet for its `idle_timeout`.

    A waiting job is not a hang while another job works. Jobs that only watch do not count.
    """
    limit = experiment.plan.policy.idle_timeout
    if limit is None:
        return False
    jobs = _list_working(experiment)
    return (
        bool(jobs)
        and all(job.state is State.RUNNING and _answers(job, observation) for job in jobs)
        and all(observation.quiet.get(experiment.key_of(job), 0.0) >= limit for job in jobs)
    )


def _list_working(experiment: Experiment) -> list[Job]:
    return [job for job in experiment.gang if job.state not in TERMINAL and job.part is not JobDuty.WATCHES]


def _answers(job: Job, observation: Observation) -> bool:
    host = None if job.host is None else observation.hosts.get(job.host)
    return host is not None and host.silent_since is None


def _idle_verdict(experiment: Experiment, observation: Observation) -> Verdict:
    """Return the verdict of a hang. It names no job as the cause: the last job to become quiet may wait for the
    first."""
    jobs = _list_working(experiment)
    first = max(jobs, key=lambda job: observation.quiet[experiment.key_of(job)])
    who = f"{first.name} was quiet first" if len(jobs) > 1 else f"`riseml logs` shows what {first.name} did last"
    retry = experiment.plan.policy.retry
    again = RetryOn.IDLE in retry.on and first.attempt <= retry.max
    message = f"it reached idle_timeout of {experiment.plan.policy.idle_timeout:.10g} s; {who}"
    return Verdict(State.FAILED, Reason.IDLE, observation.now, message=message, again=again)


_CAUSES = (
    _find_gang_cause,
    _find_lost_predecessor,
    _find_left_companion,
    _find_large_output,
    _find_lost_loss,
    _find_stuck_jobs,
    _find_hang,
    _find_stall,
)
"""The kinds of causes. Of two at the same instant and of the same rank, the one of the earlier kind counts."""
