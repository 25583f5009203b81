"""The answers of hosts as an observation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from riseml.server.clock import now
from riseml.server.hosts.observe import make_observation, observe_environment
from riseml.store.database import Database
from riseml.store.marks import DrainedHosts
from tests.unit.server.memory_pool import H1, H2, make_host, make_hosts


def test_an_observation_marks_drained_hosts_and_has_the_settings(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    drained = DrainedHosts(database)
    drained.drain_host(H2, now())
    hosts = make_hosts(tmp_path, make_host(H1), make_host(H2))
    moment = now()
    observation = make_observation(hosts, drained, hosts.last_seen(), moment)
    assert {name: host.taking for name, host in observation.hosts.items()} == {H1: True, H2: False}
    assert (observation.now, observation.lost_after) == (moment, hosts.settings.lost_after)
    database.close()


def test_hosts_that_know_one_manager_are_in_one_swarm(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/riseml.db")
    hosts = make_hosts(tmp_path, make_host(H1), make_host(H2))
    known = {H1: frozenset({"b", "c"}), H2: frozenset({"a", "c"})}
    answers = {name: replace(host, swarm_managers=known[name]) for name, host in hosts.last_seen().items()}
    observation = make_observation(hosts, DrainedHosts(database), answers, now())
    assert {host.swarm for host in observation.hosts.values()} == {"a"}
    database.close()


def test_only_hosts_that_may_answer_are_asked_for_an_image(tmp_path: Path) -> None:
    first, second = make_host(H1), make_host(H2)
    first.images.add("a")
    hosts = make_hosts(tmp_path, first, second)
    second.faults.silent = True
    answers = observe_environment(hosts, frozenset({"a"}))
    assert {name: host.images["a"].present for name, host in answers.items()} == {H1: True}
