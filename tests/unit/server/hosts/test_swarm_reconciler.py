"""When the server looks at the managers of the pool's swarm by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.base.settings import Settings
from riseml.base.states import Network
from riseml.control.observation import Observation
from riseml.executors.kinds import PoolSwarm
from riseml.executors.pool import HostPool
from riseml.executors.swarm_changes import Membership
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.swarm_reconciler import SwarmReconciler
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.control.pools import look, site
from tests.unit.control.simulation import START


class AskedSwarm(PoolSwarm):
    """A swarm that notes which hosts the reconciler waits for, and may refuse."""

    def __init__(self) -> None:
        super().__init__("5e17e4", tuple)
        self.asked: list[frozenset[HostName]] = []
        self.refuses = False

    def arrange(self, patient: frozenset[HostName]) -> dict[HostName, Membership]:
        self.asked.append(patient)
        if self.refuses:
            raise EngineError("the swarm did not promote its node")
        return {HostName("h2"): Membership.PROMOTED}


class AskedHosts(HostSet):
    """Hosts with such a swarm."""

    swarm: AskedSwarm

    def __init__(self, home: Path) -> None:
        super().__init__(Settings(home, home / "output", home / "data"), "5e17e4", HostPool((), 1.0, lambda *_: None))
        self.swarm = AskedSwarm()


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[AskedHosts]:
    yield AskedHosts(tmp_path)


def note(reconciler: SwarmReconciler, hosts: AskedHosts, seen: Observation, looks: int) -> None:
    """Let the reconciler see an observation, and wait until it has looked this often in all."""
    reconciler.note(seen)
    wait_for(f"{looks} looks", lambda: len(hosts.swarm.asked) == looks and not reconciler.is_busy, DEADLINE)


def test_a_look_follows_what_matters_and_nothing_else(hosts: AskedHosts) -> None:
    times = iter(range(0, 10_000, 20))
    reconciler = SwarmReconciler(hosts, lambda: float(next(times)))
    three = look(h1=site(3), h2=site(3, manager=False), h3=site(3))
    note(reconciler, hosts, three, 1)
    note(reconciler, hosts, three, 1)
    silent = replace(three.hosts[HostName("h3")], silent_since=START - timedelta(seconds=20))
    note(reconciler, hosts, replace(three, hosts={**three.hosts, HostName("h3"): silent}), 1)
    lost = replace(silent, silent_since=START - timedelta(seconds=400))
    note(reconciler, hosts, replace(three, hosts={**three.hosts, HostName("h3"): lost}), 2)
    assert hosts.swarm.asked == [frozenset(), frozenset()]


def test_a_host_that_may_come_back_keeps_its_role(hosts: AskedHosts) -> None:
    reconciler = SwarmReconciler(hosts)
    silent = site(3, silent_since=START - timedelta(seconds=20))
    seen = replace(look(h1=site(3), h2=silent), unseen={HostName("h3"): START})
    note(reconciler, hosts, seen, 1)
    assert hosts.swarm.asked == [frozenset({"h2", "h3"})]


def test_a_refusal_is_tried_again_later(hosts: AskedHosts) -> None:
    now = 0.0
    reconciler = SwarmReconciler(hosts, lambda: now)
    hosts.swarm.refuses = True
    two = look(h1=site(3), h2=site(3))
    note(reconciler, hosts, two, 1)
    now = 30.0
    note(reconciler, hosts, two, 1)
    now = 100.0
    note(reconciler, hosts, two, 2)


@pytest.mark.parametrize(
    "seen",
    [
        look(h1=site(3, leaderless=True), h2=site(3, manager=False)),
        look(h1=site(3, swarm="", manager=False)),
        look(Network.HOST, h1=site(3), h2=site(3)),
        look(h1=site(3, silent_since=START), h2=site(3, manager=False)),
    ],
    ids=["no leader", "no swarm", "the hosts' own network", "its manager is silent"],
)
def test_a_swarm_that_cannot_be_changed_or_is_not_needed_is_left_alone(hosts: AskedHosts, seen: Observation) -> None:
    reconciler = SwarmReconciler(hosts)
    note(reconciler, hosts, seen, 0)
