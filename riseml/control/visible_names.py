"""The names of experiments as one caller knows them: `4`, `anna.4` of another user, and no name of what is hidden."""

from __future__ import annotations

from riseml.base.names import name_for_reader
from riseml.control.permissions import may_see
from riseml.model import Caller, Experiment

HIDDEN = "another user's experiment"
"""Stands for each experiment that a caller does not see."""


def name_for(caller: Caller | None, experiment: Experiment) -> str | None:
    """Return the name of an experiment for a caller; None: they do not see it. `caller` None: its user asks."""
    is_hidden = caller is not None and not may_see(caller, experiment.owner.user, experiment.team_project)
    return None if is_hidden else name_seen(caller, experiment)


def name_seen(caller: Caller | None, experiment: Experiment) -> str:
    """Return the name of an experiment that a caller sees. `caller` None: its user asks."""
    owner = experiment.owner.user
    return name_for_reader(owner if caller is None else caller.user, owner, experiment.number, experiment.sub)
