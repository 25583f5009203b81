"""Which submissions may go before others on a team's server."""

from __future__ import annotations

from riseml.base.errors import Refused
from riseml.base.roles import Role
from riseml.model import Caller
from riseml.store.insertion import NewExperiments


def check_priority(submitted: NewExperiments, caller: Caller) -> None:
    """Refuse a priority above 0 of a caller who may not go before others.

    Raises:
        Refused: the caller is neither an admin nor a maintainer of the team project.
    """
    highest = max((plan.policy.priority for plan, _ in submitted.plans), default=0)
    role = dict(caller.projects).get(submitted.team_project or "", Role.VIEWER)
    if highest > 0 and caller.role is not Role.ADMIN and role is not Role.MAINTAINER:
        raise Refused(
            f"train.priority is {highest}, and only admins and maintainers of a team project go before others",
            "leave it out or write 0; an experiment with a priority below 0 uses what is idle",
        )
