"""Hosts that have left the pool: what their jobs saw is still known."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.memory import MemoryExecutor
from riseml.executors.pool import HostPool
from riseml.model import Capacity
from riseml.names import THIS_MACHINE, HostName
from riseml.planning.launch import LaunchTarget, StorageRoots
from riseml.server.pool.host_set import HostSet
from riseml.settings import Settings

GONE = HostName("gpu9")


@pytest.mark.parametrize("host", [None, HostName("gpu1"), GONE])
def test_jobs_of_an_engine_see_its_folders_also_when_it_has_left_the_pool(
    host: HostName | None, tmp_path: Path
) -> None:
    assert find_target(host, tmp_path).contained


def test_processes_of_this_machine_see_its_folders_also_when_a_pool_came_later(tmp_path: Path) -> None:
    roots = StorageRoots(str(tmp_path / "output"), str(tmp_path / "data"), str(Path.home()))
    assert find_target(THIS_MACHINE, tmp_path) == LaunchTarget("5e17e4", roots, contained=False)


def find_target(host: HostName | None, folder: Path) -> LaunchTarget:
    settings = Settings(folder, folder / "output", folder / "data")
    pool = HostPool((MemoryExecutor(HostName("gpu1"), Capacity(4.0, 4096)),), 2.0, lambda *_: None)
    return HostSet(settings, "5e17e4", pool).find_target(host)
