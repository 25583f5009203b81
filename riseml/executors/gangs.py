"""The order for a host that starts whole gangs (`capabilities.GangRunner`), and the machines on which it ran them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from riseml.base.names import JobName, experiment_name
from riseml.base.records import dataclass
from riseml.base.states import JobDuty
from riseml.model import Experiment, Gpu, Launch
from riseml.planning.launch import LaunchTarget, make_address_tokens, make_launch

MEASURE_EVERY = 5.0
"""Seconds between two measurements of a job, unless its `idle_timeout` needs more of them."""

_WITHIN_TIMEOUT = 10  # measurements within one idle_timeout
_SHORTEST = 0.5  # seconds between two measurements


@dataclass(frozen=True, slots=True)
class GangRole:
    """One job of a gang, and what its end means for the other jobs."""

    launch: Launch  # contains placeholders of `make_address_tokens` for addresses that only the host knows
    part: JobDuty
    grace: float  # seconds that it may go on after the experiment succeeded


@dataclass(frozen=True, slots=True)
class GangRequest:
    """One attempt of a gang."""

    experiment: int  # id of the record
    attempt: int
    title: str  # for people: `paul.4`
    roles: tuple[GangRole, ...]
    stop_grace: float  # seconds between SIGTERM and SIGKILL
    max_duration: float | None = None  # seconds after the start; None: no limit
    measure_every: float = MEASURE_EVERY  # seconds between two measurements of what each job uses


@dataclass(frozen=True, slots=True)
class JobMachine:
    """A machine that a host has chosen for jobs."""

    name: str  # name of the node
    runs: str  # what runs jobs there, for people: the scheduler and the kernel with their versions
    gpus: tuple[Gpu, ...] = ()  # those that the jobs got, as far as they are known


class MachineLister(Protocol):
    """Lists the machines on which it has run jobs, because it places them itself."""

    def list_machines(self, experiment: int) -> tuple[JobMachine, ...]:
        """Return the machines on which jobs of an experiment ran, sorted; known from their start to `release`.

        Raises:
            Unreachable: the host does not answer.
        """


def make_gang_request(
    experiment: Experiment, target: LaunchTarget, complete: Callable[[Launch], Launch] = lambda launch: launch
) -> GangRequest:
    """Return the order for a gang that has been handed over to a host.

    Args:
        experiment: its record; all jobs are of one attempt.
        target: how jobs on the host see the storage.
        complete: adds parts to a launch that no record has, such as keys.
    """
    tokens = {job.name: make_address_tokens(job.name) for job in experiment.gang}
    learned = replace(target, tokens=tokens)
    graces: dict[JobName, float] = {planned.name: planned.grace for planned in experiment.plan.jobs}
    roles = tuple(
        GangRole(complete(make_launch(experiment, job, learned)), job.part, graces[job.name]) for job in experiment.gang
    )
    plan = experiment.plan
    title = f"{experiment.owner.user}.{experiment_name(experiment.number, experiment.sub)}"
    attempt = max(job.attempt for job in experiment.gang)
    every = MEASURE_EVERY if plan.policy.idle_timeout is None else plan.policy.idle_timeout / _WITHIN_TIMEOUT
    every = min(max(every, _SHORTEST), MEASURE_EVERY)
    return GangRequest(experiment.id, attempt, title, roles, plan.policy.stop_grace, plan.policy.max_duration, every)
