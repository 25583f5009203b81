"""A swarm without a leader holds back what needs a network across hosts, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from riseml.base.names import JobName
from riseml.base.states import Network, Reason, State
from riseml.control.explain import BlockerKind, explain_experiment
from riseml.control.placement.leaders import describe_leaderless
from riseml.control.placement.refusal import describe_refusal
from riseml.model import HostObservation, World
from riseml.spec.config.types import Resources
from tests.unit.control.pools import GANG, ONE, hosts_of, look, place_all, ready, site
from tests.unit.control.simulation import START, make_pool

ALONE = {"train": ONE}
SILENT = START - timedelta(seconds=20)


def lost_majority() -> dict[str, HostObservation]:
    """Three managers, of which one answers."""
    return {
        "h1": site(3, leaderless=True),
        "h2": site(3, silent_since=SILENT),
        "h3": site(3, silent_since=SILENT),
    }


def two_left() -> dict[str, HostObservation]:
    """Four managers, of which two answer."""
    return {**lost_majority(), "h2": site(3, leaderless=True), "h4": site(3, silent_since=SILENT)}


def test_a_gang_waits_and_a_job_behind_it_runs() -> None:
    found = place_all(look(**two_left()), ready(1, GANG), ready(2, ALONE))
    assert (found[1].state, found[1].reason, found[1].placed_at) == (State.PENDING, Reason.NO_LEADER, None)
    assert "h3 and h4 do not" in found[1].message
    assert found[2].placed_at is not None, "no room is kept for a gang that waits for a leader"


def test_a_gang_that_fits_on_one_host_needs_no_leader() -> None:
    found = place_all(look(h1=site(4, leaderless=True), h2=site(4, leaderless=True)), ready(1, GANG))
    assert set(hosts_of(found[1]).values()) == {"h1"}


def test_a_gang_is_accepted_while_there_is_no_leader() -> None:
    assert describe_refusal({JobName(name): need for name, need in GANG.items()}, look(**two_left())) == ()


def test_a_manager_with_a_leader_is_enough() -> None:
    found = place_all(look(h1=site(3, leaderless=True), h2=site(3)), ready(1, GANG))
    assert found[1].network_host == "h2"
    assert found[1].network is Network.OVERLAY


def test_the_reason_is_explained_with_the_managers_that_do_not_answer() -> None:
    seen, waiting = look(**two_left()), ready(1, GANG)
    found = explain_experiment(World((waiting,)), seen, waiting)
    assert [blocker["block"] for blocker in found["blockers"]] == [BlockerKind.LEADER]
    assert "of its managers h1, h2, h3 and h4 more than half must answer, and h3 and h4 do not" in found["summary"]
    assert "`riseml pool recover`" in found["summary"]


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        (lost_majority(), "h2 and h3 do not; experiments across hosts wait"),
        ({"h1": site(3, silent_since=SILENT), "h2": site(3, manager=False)}, "its manager h1 does not answer"),
        ({"h1": site(3, leaderless=True)}, "its managers h1 do not reach more than half of all managers"),
        (
            {**{name: site(3, leaderless=True) for name in ("h1", "h2")}, "h3": site(3, silent_since=SILENT)},
            "h3 does not answer, and the others choose another one in half a minute",
        ),
        ({"h1": site(3), "h2": site(3, leaderless=True)}, ""),
        ({"h1": site(3, swarm="", manager=False), "h2": site(3, swarm="", manager=False)}, ""),
        ({"h1": site(3, silent_since=SILENT)}, ""),
    ],
)
def test_a_swarm_without_a_leader_is_named(hosts: dict[str, HostObservation], words: str) -> None:
    found = describe_leaderless(look(**hosts))
    assert words in found
    assert bool(found) == bool(words)
    assert describe_leaderless(look(Network.HOST, **hosts)) == ""


def test_a_gang_gives_its_hosts_back_when_its_network_cannot_be_made() -> None:
    simulation = make_pool(h1=site(3), h2=site(3))
    simulation.submit(ready(1, GANG))
    simulation.slow = 9  # what prepares its hosts does not begin
    simulation.turn()
    assert simulation.stored[1].placed_at is not None
    for host in simulation.hosts.values():
        host.site = replace(host.site, leaderless=True)
    simulation.busy.clear()
    simulation.slow = 0
    simulation.submit(ready(2, {"train": Resources(cpus=3, mem=64)}))
    simulation.settle(3)
    found = simulation.stored[1]
    assert (found.state, found.reason, hosts_of(found)["master"]) == (State.PENDING, Reason.NO_LEADER, None)
    assert max(job.attempt for job in found.gang) == 1, "nothing was tried"
    assert simulation.state(2) is State.RUNNING
    for host in simulation.hosts.values():
        host.site = replace(host.site, leaderless=False)
    simulation.exit(2, "train", 0)
    simulation.settle(4)
    assert simulation.state(1) is State.RUNNING
