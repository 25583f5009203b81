"""Whether the quotas of a team's server let a change of a set in, as they let a submission in."""

from __future__ import annotations

from functools import partial

from riseml.model import Experiment
from riseml.server.services import Services
from riseml.store.insertion import AdmitChange, admit_change


def find_set_admission(member: Experiment, services: Services, *, adds: bool) -> AdmitChange:
    """Return what lets a change of a set in, or refuses it by the quotas of its user and its team project.

    Args:
        member: an experiment of the set.
        services: of this server.
        adds: whether the change adds trials.
    """
    if services.team is None:
        return admit_change
    admission = services.team.admission
    return partial(admission.admit_change, user=member.owner.user, team_project=member.team_project, adds=adds)
