"""Where outputs and data are on hosts, and how jobs mount them."""

from __future__ import annotations

from riseml.server.hosts.mode import PoolMode
from riseml.server.hosts.storage_mounts import find_mounts, find_roots
from riseml.spec.pool.types import PoolSpec, Volume
from tests.unit.server.hosts.modes import LOCAL, SETTINGS, TWO


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
