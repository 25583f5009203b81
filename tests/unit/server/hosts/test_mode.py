"""Local mode and the pool as values: the network of gangs, which hosts see the outputs, and where both are."""

from __future__ import annotations

import pytest

from riseml.base.states import Network
from riseml.server.hosts.mode import HostMode, PoolMode, choose_network, find_registry, shares_output
from riseml.spec.pool.types import PoolSpec
from tests.unit.server.hosts.modes import LOCAL, ONE, TWO


@pytest.mark.parametrize(
    ("mode", "network"),
    [
        (LOCAL, Network.BRIDGE),
        (PoolMode(PoolSpec(ONE)), Network.BRIDGE),
        (PoolMode(PoolSpec(ONE, network=Network.HOST)), Network.HOST),
        (PoolMode(PoolSpec(TWO)), Network.OVERLAY),
    ],
)
def test_the_mode_says_which_network_gangs_use(mode: HostMode, network: Network) -> None:
    assert choose_network(mode) is network


def test_several_hosts_share_the_output_only_if_pool_yml_names_it() -> None:
    assert shares_output(LOCAL)
    assert shares_output(PoolMode(PoolSpec(ONE)))
    assert shares_output(PoolMode(PoolSpec(TWO, output="/nfs")))
    assert not shares_output(PoolMode(PoolSpec(TWO)))


def test_only_a_pool_has_a_registry() -> None:
    assert find_registry(LOCAL) is None
    assert find_registry(PoolMode(PoolSpec(TWO, registry="h1:5000"))) == "h1:5000"
