"""A private Slurm cluster of three nodes, and a server that uses it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.disks import mount_disk
from tests.support.rig import Rig
from tests.support.root import need_root
from tests.support.slurm_cluster import SlurmCluster, running_cluster


@pytest.fixture(scope="session")
def small_folder() -> Iterator[Path]:
    """A folder of 160 MiB that all nodes see: it is mounted before they start."""
    need_root("a private Slurm cluster needs root: it makes network namespaces")
    with TemporaryDirectory(prefix="riseml-disk-") as place, mount_disk(Path(place), 160) as folder:
        yield folder


@pytest.fixture(scope="session")
def cluster(small_folder: Path) -> Iterator[SlurmCluster]:
    """The cluster of all tests here."""
    if shutil.which("slurmctld", path="/usr/sbin:/sbin") is None:
        pytest.fail("Slurm is not installed: scripts/slurm/packages does that")
    with running_cluster() as made:
        yield made


@pytest.fixture
def slurm_rig(tmp_path: Path, cluster: SlurmCluster) -> Iterator[Rig]:
    """A server with a home of its own on the cluster; afterwards nothing of it may be left."""
    home = tmp_path / "home"
    cluster.write_pool(home)
    rig = Rig(home, None)
    rig.host = cluster
    with rig:
        yield rig
        rig.clean_up()
