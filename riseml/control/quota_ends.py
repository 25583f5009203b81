"""When a quota that holds an experiment frees: which experiments use it, and when each ends at the latest. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from riseml.control.placement.shortage import UserNames
from riseml.control.quotas import QuotaHold, borrows, exceeds, holds_place, list_accounts, measure_plan
from riseml.control.times import find_limit_end
from riseml.model import Experiment

_MOST_NAMED = 5
_HOUR = 3600
_MINUTE = 60


def list_quota_users(experiments: Iterable[Experiment], hold: QuotaHold) -> list[Experiment]:
    """Return the experiments that use what a quota allows."""
    return [
        experiment
        for experiment in experiments
        if holds_place(experiment)
        and not borrows(experiment)
        and hold.account in list_accounts(experiment.owner.user, experiment.team_project)
        and getattr(measure_plan(experiment.plan), hold.resource) > 0
    ]


def describe_quota_end(hold: QuotaHold, users: Sequence[Experiment], names: UserNames, now: datetime) -> str:
    """Return when a quota has room for the experiment that it holds.

    Args:
        hold: the quota.
        users: the experiments that use it.
        names: of the experiments, for the user.
        now: the time.
    """
    if hold.can_never_start:
        return f"{hold.describe_need()} and can never start: end it, or ask an admin for a larger quota"
    lacking = hold.in_use + hold.need - hold.limit
    amounts = {user.id: getattr(measure_plan(user.plan), hold.resource) for user in users}
    limited = sorted((end, user.id) for user in users if (end := find_limit_end(user)) is not None)
    freed = 0.0
    for end, identity in limited:
        freed += amounts[identity]
        if not exceeds(lacking, freed):
            left = _describe_duration((end - now).total_seconds())
            return f"experiment {names[identity]} ends within {left} (max_duration), which frees enough"
    single = [identity for identity, amount in amounts.items() if not exceeds(lacking, amount)]
    if len(single) == 1:
        return f"it can start when {names[single[0]]} ends"
    if single:
        return f"it can start when one of {_join(single, names)} ends"
    return f"it can start when enough of {_join(list(amounts), names)} have ended"


def _join(identities: Sequence[int], names: UserNames) -> str:
    more = len(identities) - _MOST_NAMED
    return names.join(identities[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _describe_duration(seconds: float) -> str:
    """Return a time in whole minutes, rounded up: `2 h`, `1 h 20 min`, `5 min`."""
    minutes = max(1, -int(-seconds // _MINUTE))
    hours, minutes = divmod(minutes, _HOUR // _MINUTE)
    parts = [f"{hours} h"] * (hours > 0) + [f"{minutes} min"] * (minutes > 0)
    return " ".join(parts)
