"""IDs of another user's experiments: an answer about `paul.18` says `paul.18`, so that a command can ask on with it.

The server names experiments by their numbers, which are those of their user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from riseml import wire


def find_user(identity: str) -> str:
    """Return the user whom a canonical ID names: `paul` of `paul.18.1.worker.3`; empty for one of the caller's own."""
    head = identity.partition(".")[0]
    return "" if head[:1].isdigit() else head


def name_experiment(experiment: wire.ExperimentView, user: str) -> wire.ExperimentView:
    """Return an experiment, its jobs and its members with the IDs of a user; empty: as it is."""
    if not user:
        return experiment
    return {
        **experiment,
        "id": f"{user}.{experiment['id']}",
        "jobs": [{**job, "id": f"{user}.{job['id']}"} for job in experiment["jobs"]],
        "experiments": [name_experiment(member, user) for member in experiment["experiments"]],
    }


def name_entry(entry: wire.Entry, user: str) -> wire.Entry:
    """Return an entry of a log with the ID of a user; empty: as it is."""
    if not user or "id" not in entry:
        return entry
    named: wire.Entry = {**entry, "id": f"{user}.{entry['id']}"}  # type: ignore[typeddict-item,assignment]  # the same shape
    return named
