"""When to copy the output of an experiment into its store, and when to fill the output before jobs start: with what is
in the store, or with the files of the trial that it continues.

A store that does not answer delays a copy, and the end of an experiment by at most `GIVE_UP_SAVING`. It delays jobs in
one case only: the next attempt with `restore`, on hosts that share no output, waits at most `GIVE_UP_BEFORE_RETRY` for
the last copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from riseml.base.names import HostName
from riseml.base.states import TERMINAL
from riseml.control.actions import InheritOutput, RestoreOutput, SaveOutput
from riseml.control.observation import NEVER_SAVED, Observation
from riseml.model import Experiment, HostObservation

GIVE_UP_SAVING = timedelta(minutes=10)
"""How long the server repeats the last copy while no byte of it arrives."""

GIVE_UP_BEFORE_RETRY = timedelta(minutes=1)
"""How long the next attempt waits for the last attempt's output to be copied, while no byte of it arrives."""


def find_attempt(experiment: Experiment) -> int:
    """Return the attempt of the whole gang: a job that has started again alone has a higher one."""
    return min(job.attempt for job in experiment.gang)


def find_saves(experiment: Experiment, observation: Observation, *, is_released: bool) -> Iterator[SaveOutput]:
    """Yield the copy of an output that is due.

    Args:
        experiment: its record.
        observation: what this pass saw.
        is_released: no host has containers or networks of the experiment any more, so its output is complete.
    """
    save = experiment.plan.policy.save
    host = _find_host(experiment)
    if save is None or host is None or experiment.started_at is None or not _answers(host, observation):
        return
    if awaits_save(experiment, observation):
        if is_released or experiment.state not in TERMINAL:
            yield SaveOutput(host, experiment.id, find_attempt(experiment))
    elif (
        experiment.state not in TERMINAL
        and not _has_ended(experiment)
        and find_filling(experiment, observation) is None
    ):
        saved_at = observation.saves.get(experiment.id, NEVER_SAVED).at
        # a moment in the future is from before the clock was set back
        past = [
            moment for moment in (saved_at, experiment.started_at) if moment is not None and moment <= observation.now
        ]
        if not past or observation.now - max(past) >= timedelta(seconds=save.every):
            yield SaveOutput(host, experiment.id, 0)


def awaits_save(experiment: Experiment, observation: Observation) -> bool:
    """Return True while the experiment, or its next attempt, waits for the copy of its output."""
    save = experiment.plan.policy.save
    host = _find_host(experiment)
    saved = observation.saves.get(experiment.id, NEVER_SAVED)
    attempt = find_attempt(experiment)
    if save is None or host is None or experiment.started_at is None or attempt <= max(saved.last, saved.given_up):
        return False
    if experiment.state in TERMINAL:
        # not since its end: the server may have learned of that much later
        since = observation.now if experiment.verdict is None else experiment.verdict.at
        patience = GIVE_UP_SAVING
    elif _delays_retry(experiment, observation) and experiment.verdict is not None:
        since = experiment.verdict.at
        patience = GIVE_UP_BEFORE_RETRY
    else:
        return False
    if not _answers(host, observation):
        return experiment.state in TERMINAL and not observation.is_over(since)
    problem = observation.problems.get(SaveOutput(host, experiment.id, attempt))
    if problem is None:
        return True
    return not problem.permanent and observation.now - max(problem.since, saved.moved_at or problem.since) < patience


def find_filling(experiment: Experiment, observation: Observation) -> InheritOutput | RestoreOutput | None:
    """Return the next action that fills the output before the jobs of an attempt start; None when none is needed.

    The files of a parent come first: what an earlier attempt has saved is newer, and replaces them.
    """
    parent = None if experiment.plan.lineage is None else experiment.plan.lineage.parent
    host = _find_host(experiment)
    if parent is not None and host is not None and experiment.id not in observation.inherited:
        return InheritOutput(host, experiment.id, parent)
    return _find_restore(experiment, observation)


def _find_restore(experiment: Experiment, observation: Observation) -> RestoreOutput | None:
    save = experiment.plan.policy.save
    host = _find_host(experiment)
    if save is None or not save.restore or host is None or experiment.id in observation.filled:
        return None
    return RestoreOutput(host, experiment.id, find_attempt(experiment))


def _find_host(experiment: Experiment) -> HostName | None:
    """Return a host that has the output."""
    return next((job.host for job in experiment.gang if job.host is not None), None)


def _answers(host: HostName, observation: Observation) -> bool:
    present: HostObservation | None = observation.hosts.get(host)
    return present is not None and present.silent_since is None


def _has_ended(experiment: Experiment) -> bool:
    return all(job.state in TERMINAL for job in experiment.gang)


def _delays_retry(experiment: Experiment, observation: Observation) -> bool:
    """Return True when another attempt follows, which may get a host that does not have this output."""
    save = experiment.plan.policy.save
    verdict = experiment.verdict
    if save is None or not save.restore or observation.shared_output or len(observation.hosts) < 2:
        return False
    return verdict is not None and verdict.again and _has_ended(experiment)
