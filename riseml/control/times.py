"""When jobs and experiments ran: by the jobs' own times, whatever the server did meanwhile.

A job has the times of its host, as its lines have. A host whose clock differs seems to start jobs before they got their
place, or to end them in the future: `Job.ahead` moves both times alike, so that the time that a job ran stays exact. A
job whose host measures by a monotonic clock (`ContainerObservation.ran`) keeps its length when the time of day
is set.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from riseml.base.names import HostName
from riseml.base.states import TERMINAL, JobDuty, Reason
from riseml.control.observation import Observation
from riseml.model import ContainerObservation, Experiment, Job, Verdict

_COUNTS = frozenset({JobDuty.DECIDES, JobDuty.HELPS})
_CAUSED = frozenset({Reason.CASCADE, Reason.NO_LONGER_NEEDED})
"""Reasons of jobs that riseml ended because another one had ended: it may have done so much later."""


_FAR_BEHIND = 2.0
"""Seconds. A clock that is so far behind does not say when after the placement a job started: what was seen is new."""


class HostClocks:
    """How far the clocks of hosts are ahead, as what one pass saw of the jobs of an experiment shows.

    All jobs of a host get the same shift, so that the order of their ends stays. The first ones that were dated decide.
    """

    def __init__(self, experiment: Experiment, observation: Observation) -> None:
        self.experiment = experiment
        self.observation = observation
        self._found: dict[HostName, float] = {}

    def find_ahead(self, host: HostName) -> float:
        """Return the seconds by which the clock of a host is ahead: no job starts before it has its place, and what was
        seen is not in the future."""
        if host not in self._found:
            self._found[host] = self._compare(host)
        return self._found[host]

    def _compare(self, host: HostName) -> float:
        jobs = [job for job in self.experiment.gang if job.host == host]
        dated = [job.ahead for job in jobs if job.started_at is not None]
        containers = self.observation.hosts[host].containers
        spans = [_find_span(containers.get(self.experiment.key_of(job))) for job in jobs]
        starts = [span[0] for span in spans if span is not None]
        if not starts:
            return dated[0] if dated else 0.0
        newest = (max(span[1] for span in spans if span is not None) - self.observation.now).total_seconds()
        if dated:
            return max(dated[0], newest)
        placed = self.experiment.placed_at
        behind = 0.0 if placed is None else max(0.0, (placed - min(starts)).total_seconds())
        return newest if behind > _FAR_BEHIND else max(-behind, newest)


def date_start(job: Job, container: ContainerObservation, clocks: HostClocks) -> Job:
    """Return the record of a job that runs with its start."""
    if job.started_at is not None:
        return job
    started = container.started_at or clocks.observation.now
    return replace(job, started_at=started, ahead=_find_ahead(job, clocks))


def date_end(job: Job, container: ContainerObservation, clocks: HostClocks) -> Job:
    """Return the record of a job that has ended with its start and its end."""
    started = job.started_at or container.started_at
    if started is None:
        return replace(job, ended_at=container.finished_at or clocks.observation.now)
    ahead = job.ahead if job.started_at is not None else _find_ahead(job, clocks)
    begun = replace(job, started_at=started, ahead=ahead)
    ran = _measure_run(container)
    if ran is not None:
        ended = started + timedelta(seconds=ran)
    elif container.finished_at is not None:
        ended = max(started, container.finished_at)
    else:
        ended = _find_last_moment(clocks.experiment, begun, container.last_sign, clocks.observation)
    return replace(begun, ended_at=ended)


def date_loss(experiment: Experiment, job: Job, observation: Observation) -> Job:
    """Return the record of a job that its host does not show any more, with the last moment at which it was known to
    run as its end."""
    if job.started_at is None:
        return replace(job, ended_at=observation.now)
    return replace(job, ended_at=_find_last_moment(experiment, job, None, observation))


def date_experiment(experiment: Experiment) -> Experiment:
    """Return the experiment with its start: that of its first job, even of a job that ended at once. The start of
    another attempt ends the wait for it."""
    begun = min((job.begun_at for job in experiment.gang if job.begun_at is not None), default=None)
    if begun is None:
        return experiment
    if experiment.started_at is None:
        return replace(experiment, started_at=begun)
    if experiment.waits_since is None:
        return experiment
    waited = (begun - experiment.waits_since).total_seconds()  # negative when the time of day was set back meanwhile
    return replace(experiment, waited=experiment.waited + waited, waits_since=None)


def find_attempt_end(experiment: Experiment, verdict: Verdict) -> datetime | None:
    """Return when the last job of an attempt ended; None: none of its jobs ran.

    Jobs that riseml ended because another one had ended do not count: it did so when it noticed, and the jobs ran on
    while no server was there. A helper that has time to end by itself counts until its grace is over. When a user, a
    search or a limit ends an experiment, all jobs run until they are ended.
    """
    ran = [job for job in experiment.gang if job.begun_at is not None and job.over_at is not None]
    if verdict.job is None:
        counted = ran
    else:
        own = [job for job in ran if job.reason not in _CAUSED]
        counted = [job for job in own if job.part in _COUNTS or job.name == verdict.job] or ran
    ends = [job.over_at for job in counted if job.over_at is not None]
    if not ends:
        return None
    last = max(ends)
    graces = {planned.name: timedelta(seconds=planned.grace) for planned in experiment.plan.jobs}
    helpers = (job for job in ran if job.reason is Reason.NO_LONGER_NEEDED and job.part is JobDuty.HELPS)
    late = [min(job.over_at, last + graces.get(job.name, timedelta())) for job in helpers if job.over_at is not None]
    return max([last, *late])


def find_limit_end(experiment: Experiment) -> datetime | None:
    """Return when an experiment reaches `max_duration`; None: it has no such limit, or none of its jobs runs. Waits
    between two attempts do not count."""
    limit = experiment.plan.policy.max_duration
    if limit is None or experiment.started_at is None or experiment.waits_since is not None:
        return None
    return experiment.started_at + timedelta(seconds=experiment.waited + limit)


def find_time_over(experiment: Experiment, observation: Observation) -> datetime | None:
    """Return when an experiment had run for `max_duration`; None: it has not, or it is not known yet.

    A job on a host that does not answer may have ended in time. The host answers, or is lost.
    """
    bound = find_limit_end(experiment)
    if bound is None or _find_present(experiment, observation) < bound:
        return None
    return bound if all(_is_settled(experiment, job, observation) for job in experiment.gang) else None


def _find_ahead(job: Job, clocks: HostClocks) -> float:
    return 0.0 if job.host is None else clocks.find_ahead(job.host)


def _find_span(container: ContainerObservation | None) -> tuple[datetime, datetime] | None:
    """Return the first and the last moment of a job that its host has dated; None: it has dated none."""
    if container is None or container.late or container.started_at is None:
        return None
    ran = container.started_at + timedelta(seconds=container.ran or 0.0)
    return container.started_at, max(ran, container.finished_at or ran)


def _measure_run(container: ContainerObservation) -> float | None:
    """Return the seconds that a job ran, which has ended; None: its host does not know."""
    if container.ran is not None:
        return max(0.0, container.ran)
    if container.started_at is None or container.finished_at is None:
        return None
    return max(0.0, (container.finished_at - container.started_at).total_seconds())


def _find_last_moment(experiment: Experiment, job: Job, trace: datetime | None, observation: Observation) -> datetime:
    """Return when a job was last known to run, by the clock of its host; `trace` is what the host knows of that."""
    host = None if job.host is None else observation.hosts.get(job.host)
    signs = [observation.last_signs.get(experiment.key_of(job)), None if host is None else host.silent_since]
    last = max((sign for sign in signs if sign is not None), default=None)
    ahead = timedelta(seconds=job.ahead)
    now = observation.now + ahead
    moment = now if last is None else max(last + ahead, trace or last + ahead)
    return max(min(moment, now), job.started_at or now)


def _find_present(experiment: Experiment, observation: Observation) -> datetime:
    """Return the time of day, as far as a job runs that measures it by a monotonic clock."""
    moments: list[datetime] = []
    for job in experiment.gang:
        host = None if job.host is None else observation.hosts.get(job.host)
        container = None if host is None else host.containers.get(experiment.key_of(job))
        if container is not None and container.running and container.ran is not None and job.begun_at is not None:
            moments.append(job.begun_at + timedelta(seconds=container.ran))
    return max(moments, default=observation.now)


def _is_settled(experiment: Experiment, job: Job, observation: Observation) -> bool:
    """Return False for a job whose host does not say now whether it has ended."""
    if job.state in TERMINAL or job.host is None:
        return True
    host = observation.hosts.get(job.host)
    if host is None or host.silent_since is not None:
        return False
    container = host.containers.get(experiment.key_of(job))
    return container is None or not container.late
