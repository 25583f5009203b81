"""Decisions and finished actions as lines of the server's log. Pure: records in, lines out.

A line names the experiment as its user knows it, the job, the host and the reason:

    4 placed: master, worker.1 on gpu1; worker.2 on gpu2 (first in the queue)
    4.master a1 started on gpu1 in 0.21 s
    4 FINISHED: master ended with exit code 0

Lines hold names, states, reasons and exit codes only. No value of `env` and no output of a job can be in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from riseml.base.names import HostName, JobName, experiment_name
from riseml.base.states import SENTENCES, TERMINAL, JobDuty, Reason, State
from riseml.control.actions import Action
from riseml.control.decide import takes_place
from riseml.control.observation import Observation
from riseml.control.placement.leaders import describe_leaderless
from riseml.control.placement.queue import make_queue
from riseml.control.quotas import QuotaRules
from riseml.model import Experiment, HostObservation, Job, World
from riseml.server.log_line import LogLine

Saved = Sequence[tuple[Experiment, Experiment]]
"""The changes of one pass that were saved, as (old, new)."""


def describe_pass(before: World, saved: Saved, team: QuotaRules | None = None) -> list[LogLine]:
    """Return the lines of one pass; empty when nothing changed.

    Args:
        before: the world at the beginning of the pass.
        saved: the changes that the pass saved, in this order.
        team: what the pass knew about the users of a team's server; None: the server has one user.
    """
    after = {new.id: new for _, new in saved}
    lines: list[LogLine] = []
    for old, new in saved:
        lines += _describe_jobs(old, new)
        if takes_place(old, new):
            lines.append(_describe_place(new, _find_overtaken(new, make_queue(before.experiments, team), after)))
        lines += _describe_experiment(old, new)
    return lines


def describe_hosts(before: Mapping[HostName, HostObservation], observation: Observation) -> list[LogLine]:
    """Return one line for each host that answers for the first time, answers again, or is lost since `before`.

    Hosts that become silent are left out: `app` logs them at once, with the error.
    """
    lines: list[LogLine] = []
    for name, host in sorted(observation.hosts.items()):
        old = before.get(name)
        if old is None:
            room = f"{host.capacity.cpus:g} cores, {host.capacity.mem} MiB, {len(host.capacity.gpus)} GPUs"
            lines.append(LogLine(f"host {name} answers: {room}", host=name))
        elif old.silent_since is not None and host.silent_since is None:
            silence = (observation.now - old.silent_since).total_seconds()
            lines.append(LogLine(f"host {name} answers again after {silence:.0f} s", host=name, seconds=silence))
    return lines


def describe_swarm(before: Observation | None, observation: Observation) -> list[LogLine]:
    """Return a line when a swarm of the hosts has lost its leader since `before`, or has one again."""
    former_trouble = "" if before is None else describe_leaderless(before)
    trouble = describe_leaderless(observation)
    if trouble == former_trouble:
        return []
    return [LogLine(trouble or "the Docker swarm of the hosts has a leader again")]


def describe_done(action: Action, experiment: Experiment | None, seconds: float) -> LogLine:
    """Return the line of an action that succeeded: `4.master a1 started on gpu1 in 0.21 s`."""
    name = name_owner(action, experiment)
    key = action.job
    subject = name if key is None else f"{name}.{key.job} a{key.attempt}"
    return _describe_action(action, name, f"{subject} {action.describe_done()} in {seconds:.2f} s", seconds)


def describe_failure(action: Action, experiment: Experiment | None, message: str, seconds: float) -> LogLine:
    """Return the line of an action that failed: `start 4.master on gpu1 failed after 0.21 s: no such image`."""
    name = name_owner(action, experiment)
    return _describe_action(action, name, f"{action.describe(name)} failed after {seconds:.2f} s: {message}", seconds)


def _describe_action(action: Action, name: str, text: str, seconds: float) -> LogLine:
    key = action.job
    job, attempt = (None, None) if key is None else (key.job, key.attempt)
    return LogLine(text, experiment=name, job=job, attempt=attempt, host=action.host, seconds=seconds)


def name_owner(action: Action, experiment: Experiment | None) -> str:
    """Return the ID of the experiment that an action belongs to; `#7`, the id of its record, when it is closed."""
    if experiment is None:
        return f"#{action.owner}"
    return experiment_name(experiment.number, experiment.sub)


def _describe_place(new: Experiment, overtaken: Sequence[str]) -> LogLine:
    by_host: dict[HostName, list[JobName]] = {}
    for job in new.gang:
        if job.host is not None:
            by_host.setdefault(job.host, []).append(job.name)
    places = "; ".join(f"{', '.join(jobs)} on {host}" for host, jobs in by_host.items())
    why = "first in the queue" if not overtaken else f"fits beside what is kept for {', '.join(overtaken)}"
    return LogLine(
        f"{_name_experiment(new)} placed: {places} ({why})",
        experiment=_name_experiment(new),
        host=next(iter(by_host)) if len(by_host) == 1 else None,
        state=new.state.value,
        reason=new.reason.value,
    )


def _find_overtaken(new: Experiment, queue: Iterable[Experiment], after: Mapping[int, Experiment]) -> list[str]:
    """Return the experiments that were ahead in the queue and still wait for room."""
    ahead: list[str] = []
    for experiment in queue:
        if experiment.id == new.id:
            return ahead
        now = after.get(experiment.id, experiment)
        if now.placed_at is None and now.state is State.PENDING and now.reason in (Reason.NO_ROOM, Reason.NEXT):
            ahead.append(_name_experiment(now))
    return []  # it entered the queue in this pass, alone or after experiments that were placed in the same pass


def _describe_jobs(old: Experiment, new: Experiment) -> Iterator[LogLine]:
    """Yield the decisions about jobs: stops and attempts in groups, ends one by one."""
    pairs = [(before, after) for before, after in zip(old.jobs, new.jobs, strict=True) if before is not after]
    stopping: dict[Reason, list[Job]] = {}
    repeated: dict[int, list[Job]] = {}
    for before, after in pairs:
        if after.ending is not None and before.ending is None and after.state not in TERMINAL:
            stopping.setdefault(after.ending, []).append(after)
        if after.attempt > before.attempt:
            repeated.setdefault(after.attempt, []).append(after)
    name = _name_experiment(new)
    for before, after in pairs:
        ran = before.host is not None or before.part is JobDuty.PREPARES
        if ran and after.state in TERMINAL and before.state not in TERMINAL:
            yield _describe_end(name, before, after)
    for reason, jobs in stopping.items():
        yield LogLine(f"{name} stops {_join_jobs(jobs)}: {SENTENCES[reason]}", experiment=name, reason=reason.value)
    for attempt, jobs in repeated.items():
        yield LogLine(f"{name} attempt {attempt}: {_join_jobs(jobs)}", experiment=name, attempt=attempt)


def _describe_end(name: str, old: Job, new: Job) -> LogLine:
    host = new.host or old.host
    where = "" if host is None else f" on {host}"
    return LogLine(
        f"{name}.{new.name} a{old.attempt} {new.state.value}{where}: {_explain_job(new)}",
        experiment=name,
        job=new.name,
        attempt=old.attempt,
        host=host,
        state=new.state.value,
        reason=new.reason.value,
    )


def _describe_experiment(old: Experiment, new: Experiment) -> Iterator[LogLine]:
    """Yield the experiment's verdict, its change of state or reason, and its close."""
    name = _name_experiment(new)
    verdict = new.verdict
    for base, resolved in new.resolved:
        if (base, resolved) not in old.resolved:
            yield LogLine(f"{name} runs {base} as {resolved}", experiment=name)
    if verdict is not None and old.verdict is None and new.state not in TERMINAL:
        outcome = "another attempt follows" if verdict.again else f"it ends as {verdict.state.value}"
        why = _explain_state(new, verdict.reason, verdict.job)
        yield LogLine(f"{name} decided: {outcome}: {why}", experiment=name, reason=verdict.reason.value)
    changed = (old.state, old.reason) != (new.state, new.reason)
    if changed and not (takes_place(old, new) and new.state is State.STARTING):
        job = None if verdict is None else verdict.job
        why = "" if new.state is State.RUNNING else f": {_explain_state(new, new.reason, job)}"
        yield LogLine(f"{name} {new.state.value}{why}", experiment=name, state=new.state.value, reason=new.reason.value)
    if new.closed and not old.closed:
        yield LogLine(f"{name} closed: nothing of it is left on any host", experiment=name, state=new.state.value)


def _explain_state(experiment: Experiment, reason: Reason, name: JobName | None) -> str:
    """Return why an experiment is in its state: the end of the job that decided, else the sentence of the reason."""
    if experiment.state in TERMINAL or experiment.verdict is not None:
        for job in experiment.jobs:
            if job.name == name and job.exit_code is not None and reason is job.reason:
                return f"{name} ended with {_explain_job(job)}"
        if name is not None:
            return f"{name}: {SENTENCES[reason]}"
    return SENTENCES[reason]


def _explain_job(job: Job) -> str:
    if job.exit_code is None or job.reason is Reason.CACHED:
        return SENTENCES[job.reason]
    if job.reason in (Reason.COMPLETED, Reason.EXIT_CODE):
        return f"exit code {job.exit_code}"
    return f"exit code {job.exit_code} ({SENTENCES[job.reason]})"


def _join_jobs(jobs: Iterable[Job]) -> str:
    return ", ".join(job.name for job in jobs)


def _name_experiment(experiment: Experiment) -> str:
    return experiment_name(experiment.number, experiment.sub)
