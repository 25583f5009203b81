"""Subnets, addresses and ports: none is given twice."""

from __future__ import annotations

import ipaddress
import itertools

import pytest

from riseml.base.states import Network, State
from riseml.control.placement.addresses import PORTS, SubnetAllocator, choose_addresses, count_addresses
from riseml.control.placement.place import place_gangs
from riseml.model import World
from tests.unit.control.pools import ONE, gang_of, look, place_all, ready, site


@pytest.mark.parametrize("jobs", [1, 20, 21, 61, 62, 200])
def test_two_attempts_and_the_swarm_share_no_address(jobs: int) -> None:
    subnet = SubnetAllocator("10.213.0.0/16", []).take(count_addresses(Network.OVERLAY, jobs))
    assert subnet is not None
    attempts = [set(choose_addresses(subnet, Network.OVERLAY, jobs, attempt)) for attempt in range(1, 8)]
    assert all(len(found) == jobs for found in attempts)
    assert all(one.isdisjoint(other) for one, other in itertools.pairwise(attempts))
    swarm = set(list(map(str, ipaddress.ip_network(subnet).hosts()))[1 : jobs + 1])  # the gateway has the first
    assert all(swarm.isdisjoint(found) for found in attempts)


def test_an_overlay_leaves_room_for_an_address_on_every_host() -> None:
    needs = {"master": ONE, **{f"worker.{n}": ONE for n in range(1, 40)}}
    hosts = {f"h{n}": site(10) for n in range(4)}
    found = place_all(look(**hosts), ready(1, needs))[1]
    assert found.subnet == "10.213.0.0/25"
    assert len({job.address for job in gang_of(found).values()}) == 40


def test_a_port_in_use_is_not_given() -> None:
    pool = look(Network.HOST, h1=site(8, address="192.0.2.1", busy_ports=frozenset(PORTS) - {20007, 20011, 20012}))
    found = place_all(pool, ready(1, {"train": ONE}), ready(2, {"train": ONE}), ready(3, {"train": ONE}))
    assert [gang_of(found[n])["train"].port for n in (1, 2, 3)] == [20007, 20011, 20012]
    assert found[1].network is Network.HOST
    later = place_gangs(World((*found.values(), ready(4, {"train": ONE}))), pool).experiments[-1]
    assert later.state is State.PENDING


def test_subnets_never_overlap() -> None:
    no_subnets = ["fd00::/64", "::ffff:10.0.0.0/104", "10.213.0.0/99", "10.213.0.0", ""]
    taken = ["10.213.0.0/24", "10.213.1.64/28", "192.168.0.0/16", *no_subnets, "10.213.2.0/23"]
    subnets = SubnetAllocator("10.213.0.0/16", taken)
    assert [subnets.take(4) for _ in range(3)] == ["10.213.1.0/26", "10.213.1.128/26", "10.213.1.192/26"]
    assert subnets.take(100) == "10.213.4.0/25"
    assert SubnetAllocator("10.213.0.0/26", ["10.0.0.0/8"]).take(1) is None
    assert SubnetAllocator("10.213.0.0/28", []).take(1) is None
