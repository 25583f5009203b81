"""The parts of a placement pass, each alone: free resources, room, addresses, progress of the queue, head."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.control.placement.candidates import find_candidates
from riseml.control.placement.fit import make_gang
from riseml.control.placement.free import FreeResources
from riseml.control.placement.place import PlacementPass
from riseml.control.placement.room import Room, could_hold_when_empty
from riseml.model import Experiment, HostObservation, World
from riseml.spec.config.types import Resources
from tests.unit.control.pools import H1, H2, look, on_h1, site
from tests.unit.control.simulation import START

TWO_CORES = make_gang([Resources(2, 64)])


def make_room(*placed: Experiment, **hosts: HostObservation) -> Room:
    """The room of these hosts, of which these experiments hold a part."""
    seen = look(**hosts)
    return Room(find_candidates(seen), seen, placed)


def test_a_search_and_a_reserve_change_nothing() -> None:
    room = make_room(h1=site(8), h2=site(2))
    before = dict(room.free)
    hosts = room.find_hosts(TWO_CORES)
    reserve = room.reserve_for(make_gang([Resources(8, 64)]))
    room.find_hosts_beside(reserve, TWO_CORES)
    assert room.find_hosts(TWO_CORES) == hosts == (H2,)
    assert room.free == before


def test_a_gang_behind_the_head_gets_what_the_head_cannot_use() -> None:
    room = make_room(h1=site(8), h2=site(2))
    assert room.find_hosts_beside(room.reserve_for(make_gang([Resources(8, 64)])), TWO_CORES) == (H2,)
    assert room.find_hosts_beside(room.reserve_for(make_gang([Resources(2, 64)] * 5)), TWO_CORES) is None


def test_a_place_that_is_taken_is_no_longer_free() -> None:
    room = make_room(h1=site(8, "a", "b"))
    room.take([on_h1(Resources(3, 1024, 1), "b")])
    assert room.free == {H1: FreeResources(5.0, 7168, ("a",))}


def test_a_surplus_is_given_once() -> None:
    room = make_room(h1=site(8))
    reserve = room.reserve_for(make_gang([Resources(4, 64)]))
    placed = [on_h1(Resources(2, 64))]
    for _ in range(2):
        assert room.find_hosts_beside(reserve, TWO_CORES) == (H1,)
        room.take(placed)
        reserve.spend(placed)
    assert room.find_hosts(TWO_CORES) == (H1,)
    assert room.find_hosts_beside(reserve, TWO_CORES) is None


@pytest.mark.parametrize(
    ("host", "holds"),
    [
        (site(8), True),
        (replace(site(8), silent_since=START), True),
        (site(8, taking=False), False),
        (site(1), False),
    ],
    ids=["it answers", "it is silent and may come back", "it is drained", "it is too small"],
)
def test_the_empty_pool_could_hold_a_gang(host: HostObservation, holds: bool) -> None:  # noqa: FBT001  # a parameter of the test
    seen = look(h1=host)
    assert could_hold_when_empty(TWO_CORES, seen, PlacementPass(World(()), seen).exclusions) is holds
