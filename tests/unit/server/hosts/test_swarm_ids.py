"""Which hosts are in one swarm, by the managers that they know."""

from __future__ import annotations

from riseml.base.names import HostName
from riseml.server.hosts.swarm_ids import find_swarms


def test_members_that_know_a_manager_in_common_are_in_one_swarm() -> None:
    known = {
        HostName("h1"): frozenset({"b"}),
        HostName("h2"): frozenset({"a", "b", "c"}),  # it does not know yet that two have gone
        HostName("h3"): frozenset({"x"}),
        HostName("h4"): frozenset[str](),
    }
    assert find_swarms(known) == {"h1": "a", "h2": "a", "h3": "x", "h4": ""}
    assert find_swarms({**known, HostName("h5"): frozenset({"c", "x"})})[HostName("h3")] == "a"
