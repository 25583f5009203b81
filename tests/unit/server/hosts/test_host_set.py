"""Hosts that have left the pool, whose jobs still see their folders; and when a changed pool.yml is in force."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.names import THIS_MACHINE, HostName
from riseml.base.settings import Settings
from riseml.executors.pool import HostPool
from riseml.model import Capacity, World
from riseml.planning.launch import LaunchTarget, StorageRoots
from riseml.server.hosts.host_set import HostSet
from riseml.spec.pool.loader import load_pool
from riseml.spec.pool.types import PoolSpec
from tests.support.memory_executor import MemoryExecutor

GONE = HostName("gpu9")


@pytest.mark.parametrize("host", [None, HostName("gpu1"), GONE])
def test_jobs_of_an_engine_see_its_folders_also_when_it_has_left_the_pool(
    host: HostName | None, tmp_path: Path
) -> None:
    assert find_target(host, tmp_path).contained


def test_processes_of_this_machine_see_its_folders_also_when_a_pool_came_later(tmp_path: Path) -> None:
    roots = StorageRoots(str(tmp_path / "output"), str(tmp_path / "data"), str(Path.home()))
    assert find_target(THIS_MACHINE, tmp_path) == LaunchTarget("5e17e4", roots, contained=False)


def test_a_changed_file_is_outdated_until_it_is_in_force_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outdated: list[bool] = []

    def load(text: bytes, path: Path) -> PoolSpec:
        outdated.append(hosts.is_outdated())
        return load_pool(text, path)

    hosts = HostSet(
        Settings(tmp_path, tmp_path / "output", tmp_path / "data"), "5e17e4", HostPool((), 2.0, lambda *_: None)
    )
    monkeypatch.setattr("riseml.server.hosts.pool_file.load_pool", load)
    (tmp_path / "pool.yml").write_text("hosts: []")
    hosts.refresh(World(()))
    assert hosts.trouble is not None
    assert (outdated, hosts.is_outdated()) == ([True], False)


def find_target(host: HostName | None, folder: Path) -> LaunchTarget:
    settings = Settings(folder, folder / "output", folder / "data")
    pool = HostPool((MemoryExecutor(HostName("gpu1"), Capacity(4.0, 4096)),), 2.0, lambda *_: None)
    return HostSet(settings, "5e17e4", pool).find_target(host)
