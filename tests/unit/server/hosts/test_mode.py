"""Local mode and the pool as values: the network of gangs, which hosts see the outputs, and where both are."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.names import HostName
from riseml.base.settings import Settings
from riseml.base.states import Network
from riseml.server.hosts.mode import HostMode, LocalMode, PoolMode, choose_network, find_registry, shares_output
from riseml.server.hosts.storage_mounts import find_mounts, find_roots
from riseml.spec.pool.types import HostSpec, PoolSpec, Volume

SETTINGS = Settings(Path("/home/ann/.riseml"), Path("/home/ann/out"), Path("/home/ann/data"))
ONE = (HostSpec(HostName("h1"), "unix:///a.sock"),)
TWO = (*ONE, HostSpec(HostName("h2"), "unix:///b.sock"))
LOCAL = LocalMode("process")


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


def test_local_mode_keeps_outputs_and_data_in_the_folders_of_the_settings() -> None:
    roots = find_roots(LOCAL, SETTINGS)
    assert (roots.output, roots.data) == ("/home/ann/out", "/home/ann/data")
    output, (data,) = find_mounts(LOCAL, SETTINGS)
    assert (output.makes, data.makes) == (True, True)


def test_a_storage_that_pool_yml_names_is_never_created() -> None:
    mode = PoolMode(PoolSpec(TWO, output="/nfs", data=Volume("data")))
    output, (data,) = find_mounts(mode, SETTINGS)
    assert (output.source, output.makes) == ("/nfs", False)
    assert (data.source, data.makes) == ("data", False)
