"""A decision that one broken record cannot stop: an experiment that `decide` fails on ends alone."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from riseml.base.states import TERMINAL, Reason, State
from riseml.control.decide import Decision, decide
from riseml.control.observation import Observation
from riseml.model import Experiment, World

log = logging.getLogger(__name__)


def decide_isolated(world: World, observation: Observation) -> Decision:
    """Return the decision. Experiments that raise in `decide` become FAILED with the reason INTERNAL."""
    try:
        return decide(world, observation)
    except Exception:
        log.exception("decide failed; the server tries each experiment alone")
    healthy = World(tuple(experiment for experiment in world.experiments if _is_decidable(experiment, observation)))
    decision = decide(healthy, observation)
    decided = {experiment.id: experiment for experiment in decision.world.experiments}
    after = tuple(
        decided.get(experiment.id) or _fail_experiment(experiment, observation.now) for experiment in world.experiments
    )
    return replace(decision, world=World(after))


def _is_decidable(experiment: Experiment, observation: Observation) -> bool:
    try:
        decide(World((experiment,)), observation)
    except Exception:
        log.exception("experiment %s cannot be decided on", experiment.id)
        return False
    return True


def _fail_experiment(experiment: Experiment, moment: datetime) -> Experiment:
    if experiment.state in TERMINAL:
        return replace(experiment, closed=True)
    jobs = tuple(
        job if job.state in TERMINAL else replace(job, state=State.KILLED, reason=Reason.INTERNAL, ended_at=moment)
        for job in experiment.jobs
    )
    return replace(experiment, jobs=jobs, state=State.FAILED, reason=Reason.INTERNAL, ended_at=moment)
