"""An explanation as people get it: hosts that never answered are in it, and why others are silent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.errors import RisemlError, Unreachable
from riseml.base.names import HostName
from riseml.control.observation import Observation
from riseml.executors.pool import HostPool
from riseml.model import Capacity, Experiment, HostObservation, World
from riseml.server.api.views.explain import show_explanation
from riseml.spec.config.types import Resources
from tests.support.memory_executor import MemoryExecutor
from tests.unit.control.pools import look, ready, site
from tests.unit.control.simulation import START

H1, H2, H3 = HostName("h1"), HostName("h2"), HostName("h3")


class Mute(MemoryExecutor):
    """A host that does not answer."""

    def observe(self, references: frozenset[str]) -> HostObservation:
        raise Unreachable(f"no way to {self.name}")


def _note(_: HostName, __: RisemlError) -> None:
    """The pool is asked for its troubles."""


@pytest.fixture
def pool() -> HostPool:
    """h1 and h3 do not answer."""
    capacity = Capacity(8, 8192)
    made = HostPool((Mute(H3, capacity), MemoryExecutor(H2, capacity), Mute(H1, capacity)), 5.0, _note)
    made.observe_hosts(frozenset(), START)
    return made


def waiting(cpus: float) -> Experiment:
    return ready(1, {"train": Resources(cpus=cpus, mem=64)})


def test_hosts_that_have_never_answered_are_named_with_their_trouble(pool: HostPool) -> None:
    experiment = waiting(9)
    found = show_explanation(World((experiment,)), look(h2=site(8)), experiment, pool.executors, pool.list_problems())
    assert [(host["host"], host["obstacle"], host["text"]) for host in found["hosts"]] == [
        ("h1", "silent", "has never answered: no way to h1"),
        ("h2", None, ""),
        ("h3", "silent", "has never answered: no way to h3"),
    ]
    assert found["summary"] == "it waits for h1, h3: no other host could ever hold it"
    assert [one["block"] for one in found["blockers"]] == ["no host"]


def test_once_all_have_answered_never_is_said(pool: HostPool) -> None:
    experiment = waiting(9)
    seen = look(h1=replace(site(8, taking=False), silent_since=START), h2=site(8), h3=site(8))
    found = show_explanation(World((experiment,)), seen, experiment, pool.executors, pool.list_problems())
    assert found["summary"].startswith("it can never run: ")
    assert found["hosts"][0]["text"] == "does not answer, and is drained: no way to h1"


def test_explain_names_hosts_only_for_a_waiting_experiment(pool: HostPool) -> None:
    experiment = replace(waiting(1), placed_at=START)
    found = show_explanation(
        World((experiment,)), Observation(START, {}), experiment, pool.executors, pool.list_problems()
    )
    assert found["hosts"] == []
