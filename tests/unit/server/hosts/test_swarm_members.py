"""What was done with hosts for the swarm, as the API shows it."""

from __future__ import annotations

from dataclasses import replace

from riseml.base.states import Network, State
from riseml.executors.swarm_changes import Membership, Recovery
from riseml.model import Experiment
from riseml.server.hosts.swarm_members import show_members, show_recovery
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.server.memory_pool import H1, H2

RECOVERY = Recovery(H2, keeps_swarm=True, members=(H2,), lost=(H1,))


def test_hosts_are_listed_by_name() -> None:
    memberships = {H2: Membership.PROMOTED, H1: Membership.JOINED}
    assert show_members(memberships) == [
        {"host": "h1", "membership": "joined"},
        {"host": "h2", "membership": "promoted"},
    ]


def test_a_recovery_breaks_what_runs_across_hosts() -> None:
    def make(number: int, network: Network, state: State) -> Experiment:
        experiment = make_experiment(number, make_plan("train"), network=network)
        return replace(experiment, jobs=tuple(replace(job, state=state) for job in experiment.jobs))

    experiments = [
        make(1, Network.OVERLAY, State.RUNNING),
        make(2, Network.OVERLAY, State.FINISHED),
        make(3, Network.BRIDGE, State.RUNNING),
    ]
    view = show_recovery(RECOVERY, experiments)
    assert (view["leader"], view["lost"], view["breaks"], view["done"]) == ("h2", ["h1"], ["1"], False)
    assert show_recovery(RECOVERY, (), {H2: Membership.RECOVERED})["done"]
