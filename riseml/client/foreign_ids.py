"""IDs that name a user: an answer about `paul.18` says `paul.18`, so that a command can ask on with it.

The server names the user of each experiment that is not the caller's own. Who names themselves reads their name, too.
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
        "id": _add_user(experiment["id"], user),
        "jobs": [{**job, "id": _add_user(job["id"], user)} for job in experiment["jobs"]],
        "experiments": [name_experiment(member, user) for member in experiment["experiments"]],
    }


def name_explanation(explanation: wire.ExplanationView, user: str) -> wire.ExplanationView:
    """Return an explanation with the ID of a user; empty: as it is."""
    return {**explanation, "id": _add_user(explanation["id"], user)} if user else explanation


def name_entry(entry: wire.Entry, user: str) -> wire.Entry:
    """Return an entry of a log with the ID of a user; empty: as it is."""
    if not user or "id" not in entry:
        return entry
    named: wire.Entry = {**entry, "id": _add_user(entry["id"], user)}  # type: ignore[typeddict-item,assignment]  # the same shape
    return named


def _add_user(identity: str, user: str) -> str:
    return identity if find_user(identity) else f"{user}.{identity}"
