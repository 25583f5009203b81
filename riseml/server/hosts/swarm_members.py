"""What was done with hosts for the swarm of the pool, in the shapes of the HTTP API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from riseml import wire
from riseml.base.names import HostName, experiment_name
from riseml.base.states import PLACED, Network
from riseml.executors.swarm_changes import Membership, Recovery
from riseml.model import Experiment


def show_members(memberships: Mapping[HostName, Membership]) -> list[wire.PoolMember]:
    """Return what was done with each host, sorted by name."""
    return [{"host": name, "membership": how.value} for name, how in sorted(memberships.items())]


def show_recovery(
    recovery: Recovery, experiments: Iterable[Experiment], memberships: Mapping[HostName, Membership] | None = None
) -> wire.PoolRecovery:
    """Return how the swarm gets a new majority, and which running experiments that breaks.

    Args:
        recovery: the plan.
        experiments: every open experiment.
        memberships: what was done with each host; None: nothing yet.
    """
    return {
        "leader": recovery.leader,
        "keeps_swarm": recovery.keeps_swarm,
        "lost": sorted(recovery.lost),
        "breaks": [
            experiment_name(experiment.number, experiment.sub) for experiment in experiments if _needs_swarm(experiment)
        ],
        "done": memberships is not None,
        "members": [] if memberships is None else show_members(memberships),
    }


def _needs_swarm(experiment: Experiment) -> bool:
    return experiment.network is Network.OVERLAY and any(job.state in PLACED for job in experiment.gang)
