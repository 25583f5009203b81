"""The search for hosts of one gang."""

from __future__ import annotations

import pytest

from riseml.base.names import HostName
from riseml.control.placement.candidates import CandidateHost
from riseml.control.placement.fit import find_hosts, make_gang
from riseml.control.placement.free import FreeResources
from riseml.spec.config.types import Resources

H1, H2, H3 = HostName("h1"), HostName("h2"), HostName("h3")
WORKER, PS = Resources(cpus=4, mem=1, gpus=1), Resources(cpus=1, mem=1)


@pytest.mark.parametrize(
    ("cpus_of_h1", "gpus_of_h1", "hosts"), [(8, ("0",), (H2, H1, H2)), (9, ("0", "1"), (H1, H1, H1))]
)
def test_the_example_of_find_hosts_is_what_it_finds(
    cpus_of_h1: float, gpus_of_h1: tuple[str, ...], hosts: tuple[HostName, ...]
) -> None:
    room = {
        H1: FreeResources(cpus_of_h1, 100, gpus_of_h1),
        H2: FreeResources(5, 100, ("0",)),
        H3: FreeResources(16, 100, ()),
    }
    candidates = {name: CandidateHost({}, len(free.gpus), (), "s") for name, free in room.items()}
    assert find_hosts(make_gang((WORKER, WORKER, PS)), room, candidates) == hosts
