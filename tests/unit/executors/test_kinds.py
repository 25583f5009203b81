"""What each kind of executor can do beyond the interface, and what is known of a host by its name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from riseml.base.names import LOCAL_HOST, THIS_MACHINE, HostName
from riseml.base.settings import DOCKER, PROCESS, SLURM, Settings
from riseml.executors.base import Executor
from riseml.executors.kinds import HostOpener, find_kind, uses_containers
from riseml.spec.pool.types import SLURM_CLUSTER, HostSpec, PoolSpec, SlurmSpec

ENGINE = HostSpec(HostName("gpu1"), "unix:///none.sock")
OTHER = HostSpec(HostName("gpu2"), "unix:///other.sock")
SHARED = {"access", "builds", "disk", "inventory", "packages", "stacks", "use", "written"}
"""What each kind can do."""


@pytest.fixture
def opener(tmp_path: Path) -> HostOpener:
    return HostOpener(Settings(tmp_path, tmp_path / "output", tmp_path / "data"), "5e17e4")


def list_capabilities(executor: Executor) -> set[str]:
    fields = dataclasses.fields(executor.capabilities)
    return {field.name for field in fields if getattr(executor.capabilities, field.name) is not None}


def test_each_kind_has_the_capabilities_that_it_can_have(opener: HostOpener, tmp_path: Path) -> None:
    (cluster,) = opener.open_pool(PoolSpec((), slurm=SlurmSpec(str(tmp_path))))
    engine = opener.open_local_engine()
    own = {"check", "data", "gpus", "images", "outputs", "registries", "secret_files", "storage"}
    assert list_capabilities(engine) - SHARED == own
    assert list_capabilities(opener.open_processes()) - SHARED == {"gpus", "reviewer", "secret_files"}
    assert list_capabilities(cluster) - SHARED == {"check", "gangs", "machines", "reviewer"}
    assert (engine.name, engine.contained, cluster.contained) == (LOCAL_HOST, True, False)


def test_an_entry_that_stays_keeps_its_executor_until_the_pool_is_gone(opener: HostOpener) -> None:
    (before,) = opener.open_pool(PoolSpec((ENGINE,)))
    first, second = opener.open_pool(PoolSpec((ENGINE, OTHER)))
    assert first is before
    assert (second.name, second.url, second.is_local) == ("gpu2", "unix:///other.sock", True)
    opener.open_local_engine()
    (after,) = opener.open_pool(PoolSpec((ENGINE,)))
    assert after is not before, "the connections of the one before are closed"


@pytest.mark.parametrize(
    ("host", "kind"), [(THIS_MACHINE, PROCESS), (SLURM_CLUSTER, SLURM), (LOCAL_HOST, DOCKER), ("gpu9", DOCKER)]
)
def test_the_kind_of_a_host_is_known_after_it_has_left_the_pool(host: str, kind: str) -> None:
    assert find_kind(HostName(host)) == kind
    assert uses_containers(HostName(host)) == (kind == DOCKER)
