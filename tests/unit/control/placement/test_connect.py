"""How the jobs of a gang reach each other: network, addresses, ports, and the host that creates the network."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.states import Network, State
from riseml.control.placement.addresses import PORTS
from riseml.control.placement.connect import FreeAddresses, needs_ports
from riseml.model import HostObservation
from tests.unit.control.pools import GANG, H1, H2, ONE, gang_of, look, place_all, ready, site
from tests.unit.control.simulation import make_experiment, make_plan, make_pool


def test_another_manager_creates_the_network_when_the_network_host_is_lost_before_it_could() -> None:
    simulation = make_pool(
        h1=site(0.1, taking=False), h2=site(3, manager=False), h3=site(3, manager=False), h4=site(0.1, taking=False)
    )
    simulation.submit(make_experiment(1, make_plan(*GANG, resources=GANG)))
    simulation.turn()
    simulation.hosts[H1].faults.silent = True
    simulation.turn()
    assert simulation.stored[1].placed_at is not None
    simulation.settle(5)
    assert simulation.stored[1].network_host == "h4"
    simulation.settle(5)
    assert simulation.state(1) is State.RUNNING


def test_a_host_network_gives_every_job_its_hosts_address_and_a_port() -> None:
    pool = look(Network.HOST, h1=site(2, address="192.0.2.1"), h2=site(2, address="192.0.2.2"))
    found = place_all(pool, ready(1, GANG))[1]
    assert (found.network, found.subnet, found.network_host) == (Network.HOST, None, None)
    places = [(job.address, job.port) for job in gang_of(found).values()]
    assert len(set(places)) == 4
    assert {address for address, _ in places} == {"192.0.2.1", "192.0.2.2"}
    assert {port for _, port in places} <= set(PORTS)


def test_a_host_without_an_address_uses_a_bridge() -> None:
    found = place_all(look(Network.HOST, h1=site(8)), ready(1, GANG))[1]
    assert (found.network, found.subnet) == (Network.BRIDGE, "10.213.0.0/26")


def test_jobs_without_containers_share_the_loopback() -> None:
    found = place_all(look(Network.BRIDGE, h1=site(8, isolated=False)), ready(1, GANG))[1]
    assert {job.address for job in gang_of(found).values()} == {"127.0.0.1"}
    assert len({job.port for job in gang_of(found).values()}) == 4


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
