"""The parts of a placement pass, each alone: free resources, room, addresses, progress of the queue, head."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.names import JobName
from riseml.base.states import JobDuty, Network, State
from riseml.control.placement import queue
from riseml.control.placement.candidates import find_candidates
from riseml.control.placement.connect import FreeAddresses, needs_ports
from riseml.control.placement.fit import Gang, make_gang
from riseml.control.placement.free import FreeResources, free_after
from riseml.control.placement.place import PlacementPass
from riseml.control.placement.queue import QueueProgress
from riseml.control.placement.room import Room, could_hold_when_empty
from riseml.model import Capacity, Experiment, HostObservation, Job, World
from riseml.spec.config.types import Resources
from tests.unit.control.pools import GANG, H1, H2, ONE, gang_of, look, place_all, ready, site
from tests.unit.control.simulation import START

TWO_CORES = make_gang([Resources(2, 64)])


def make_room(*placed: Experiment, **hosts: HostObservation) -> Room:
    """The room of these hosts, of which these experiments hold a part."""
    seen = look(**hosts)
    return Room(find_candidates(seen), seen, placed)


def on_h1(need: Resources, *gpus: str) -> Job:
    """A job that has got its place."""
    return Job(JobName("train"), JobDuty.DECIDES, need, State.STARTING, host=H1, gpus=gpus)


# free resources


@pytest.mark.parametrize(
    ("need", "count"),
    [
        (Resources(2, 64), 4),
        (Resources(0.1, 64), 80),
        (Resources(0, 3000), 2),
        (Resources(0, 64, 1), 3),
        (Resources(9, 64), 0),
        (Resources(1, 9000), 0),
        (Resources(1, 64, 4), 0),
    ],
)
def test_free_resources_count_the_jobs_that_fit(need: Resources, count: int) -> None:
    free = FreeResources(8.0, 8192, ("a", "b", "c"))
    assert free.count_fits(need) == count
    assert free.count_fits(need, 1) == min(1, count)
    assert free.holds(need) == (count > 0)
    assert not free.without(need, count).holds(need)


def test_every_way_to_subtract_leaves_the_same() -> None:
    free = FreeResources(8.0, 8192, ("a", "b", "c"))
    need = Resources(2, 1024, 1)
    jobs = [on_h1(need, "a"), on_h1(need, "b")]
    left = FreeResources(4.0, 6144, ("c",))
    assert (
        free.without(need, 2)
        == free.without_jobs(jobs)
        == free_after(Capacity(8.0, 8192, ("a", "b", "c")), jobs)
        == left
    )


def test_a_job_takes_exactly_its_devices() -> None:
    assert FreeResources(8.0, 8192, ("a", "b", "c")).without_jobs([on_h1(Resources(1, 64, 1), "b")]).gpus == ("a", "c")


# room


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


# addresses


@pytest.mark.parametrize("keep_first", [True, False])
def test_the_subnet_of_the_head_is_put_aside(keep_first: bool) -> None:  # noqa: FBT001  # a parameter of the test
    addresses = FreeAddresses((), replace(look(h1=site(8)), subnets="10.213.0.0/25"))
    if keep_first:
        addresses.keep_subnet_for(4)
    first = addresses.connect(ready(1, GANG), (H1,) * 4)
    addresses.keep_subnet_for(4)
    second = addresses.connect(ready(2, GANG), (H1,) * 4)
    assert first is not None
    assert first.subnet == ("10.213.0.64/26" if keep_first else "10.213.0.0/26")
    assert second is None


def test_addresses_that_were_given_are_not_given_again() -> None:
    addresses = FreeAddresses((), look(Network.HOST, h1=site(8, address="192.0.2.1")))
    found = [addresses.connect(ready(n, {"train": ONE}), (H1,)) for n in (1, 2)]
    assert len({one.ports for one in found if one is not None}) == 2


@pytest.mark.parametrize(
    ("network", "host", "count", "ports"),
    [
        (Network.OVERLAY, site(8), 1, False),
        (Network.OVERLAY, site(8), 2, False),
        (Network.HOST, site(8, address="192.0.2.1"), 1, True),
        (Network.HOST, site(8, address="192.0.2.1"), 2, True),
        (Network.HOST, site(8), 1, False),
        (Network.BRIDGE, site(8, isolated=False), 1, True),
    ],
)
def test_jobs_that_share_the_addresses_of_their_machines_need_ports(
    network: Network,
    host: HostObservation,
    count: int,
    ports: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    assert needs_ports(look(network, h1=host, h2=host), (H1, H2)[:count]) is ports


# the queue's progress and its head


def test_a_gang_that_did_not_fit_is_not_tried_again() -> None:
    progress = QueueProgress(())
    needs = (ONE,)
    assert progress.may_try(needs, behind_head=False)
    progress.note_miss(needs)
    assert not progress.may_try(needs, behind_head=False)
    assert progress.may_try((ONE, ONE), behind_head=False)


def test_only_tries_behind_the_head_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_MOST_TRIES", 3)
    progress = QueueProgress(())
    assert all(progress.may_try((ONE,), behind_head=False) for _ in range(10))
    assert [progress.may_try((ONE,), behind_head=True) for _ in range(4)] == [True, True, True, False]
    assert progress.is_over


def test_many_different_gangs_that_do_not_fit_end_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_MOST_MISSES", 2)
    progress = QueueProgress(())
    for cores in (1, 2, 3):
        progress.note_miss((Resources(cores, 64),))
    assert not progress.may_try((ONE, ONE), behind_head=True)


def test_a_pass_is_a_room_addresses_and_a_head() -> None:
    pool = look(h1=site(8))
    running = place_all(pool, ready(1, {"train": Resources(6, 64)}))[1]
    head, small = ready(2, {"train": Resources(8, 64)}), ready(3, {"train": ONE})
    placement = PlacementPass(World((running, head, small)), pool)
    served = placement.serve_queue([head])
    assert placement.head is not None
    assert placement.head.experiment is head
    assert served[2].placed_at is None
    gang: Gang = placement.gang_of(small)
    assert placement.room.find_hosts(gang) == (H1,)
    assert placement.room.find_hosts_beside(placement.head.reserve, gang) is None
    assert gang_of(running)["train"].host == H1
