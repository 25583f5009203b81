"""Why an experiment waits, or runs where it runs. Pure, as everything here: the same world gives the same answer."""

from __future__ import annotations

from riseml.control.explanation import Explanation, Phase
from riseml.control.observation import Observation
from riseml.model import Experiment, World
from riseml.states import SENTENCES, TERMINAL, Part, State


def explain(world: World, seen: Observation, experiment: Experiment) -> Explanation:
    """Everything there is to say about an experiment's place or its waiting for one.

    Args:
        world: every experiment that is not closed; `experiment` need not be in it when it is closed.
        seen: what the last pass saw.
        experiment: whose place is explained.
    """
    return Explanation(
        experiment.id, _phase(experiment), experiment.state, experiment.reason, SENTENCES[experiment.reason]
    )


def _phase(experiment: Experiment) -> Phase:
    if experiment.state in TERMINAL:
        return Phase.ENDED
    if experiment.placed_at is not None:
        return Phase.PLACED
    ready = all(job.state is State.FINISHED for job in experiment.jobs if job.part is Part.PREPARES)
    return Phase.WAITS if ready else Phase.PREPARES
