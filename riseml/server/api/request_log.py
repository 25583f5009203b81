"""Requests of users as lines of the server's log. Pure."""

from __future__ import annotations

from riseml.base.names import CanonicalId, experiment_name
from riseml.server.log_line import LogLine
from riseml.store.experiments import ExperimentDetail


def describe_accepted(details: tuple[ExperimentDetail, ...]) -> LogLine:
    """Return `4 accepted: project toaster, jobs master, worker.1`, or the size of a set. Values of `env` stay out."""
    first = details[0].experiment
    name = str(first.number) if first.set_id is not None else experiment_name(first.number, first.sub)
    description = f"jobs {', '.join(job.name for job in first.gang)}"
    if first.set_id is not None:
        description = f"a set of {len(details)}, each with {description}"
    return LogLine(f"{name} accepted: project {first.project}, {description}", experiment=name)


def describe_kill(canonical_id: CanonicalId) -> LogLine:
    """Return `4 kill requested`."""
    return LogLine(f"{canonical_id} kill requested", experiment=str(canonical_id))
