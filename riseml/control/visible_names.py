"""The names of experiments as one caller knows them: `4`, `anna.4` of another user, and no name of what is hidden."""

from __future__ import annotations

from riseml.base.names import experiment_name
from riseml.control.permissions import may_see
from riseml.model import Caller, Experiment

HIDDEN = "another user's experiment"
"""Stands for each experiment that a caller does not see."""


def name_for(caller: Caller | None, experiment: Experiment) -> str | None:
    """Return the name of an experiment for a caller; None: they do not see it. `caller` None: its user asks."""
    name = experiment_name(experiment.number, experiment.sub)
    owner = experiment.owner.user
    if caller is None or owner == caller.user:
        return name if caller is None or may_see(caller, owner, experiment.team_project) else None
    return f"{owner}.{name}" if may_see(caller, owner, experiment.team_project) else None
