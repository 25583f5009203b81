"""A pool.yml with `engine: slurm`: what it puts into force, and what it must not do to experiments in containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.errors import UsageError
from riseml.executors.pool import HostPool
from riseml.model import World
from riseml.names import SLURM_CLUSTER
from riseml.server.pool.host_set import HostSet
from riseml.server.pool.last_executor import record_executor
from riseml.settings import ExecutorName, Settings
from riseml.states import Network
from tests.unit.control.simulation import make_experiment, make_plan

NOTHING = World(())
WAITING = World((make_experiment(1, make_plan("train")),))


def make_hosts(home: Path, executor: ExecutorName | None = None) -> HostSet:
    """Return the hosts of a home whose pool.yml names a cluster."""
    (home / "pool.yml").write_text("engine: slurm\nslurm: {folder: /shared/r}\n")
    settings = Settings(home, home / "output", home / "data", executor=executor)
    return HostSet(settings, "5e17e4", HostPool((), 2.0, lambda *_: None))


def test_a_cluster_is_the_only_host_and_everything_is_in_its_shared_folder(tmp_path: Path) -> None:
    hosts = make_hosts(tmp_path)
    hosts.open_hosts(NOTHING)
    assert (hosts.names, hosts.executor_name, hosts.network) == ((SLURM_CLUSTER,), "slurm", Network.BRIDGE)
    target = hosts.find_target(SLURM_CLUSTER)
    assert (target.roots.output, target.roots.data, target.contained) == ("/shared/r/output", "/shared/r/data", False)
    assert hosts.is_this_machine(SLURM_CLUSTER)
    assert not hosts.find_target(SLURM_CLUSTER).tokens


def test_another_setting_makes_another_executor_and_the_same_ones_none(tmp_path: Path) -> None:
    hosts = make_hosts(tmp_path)
    hosts.open_hosts(NOTHING)
    (before,) = hosts.pool.executors.values()
    (tmp_path / "pool.yml").write_text("engine: slurm\nslurm:\n  folder: /shared/r\n")
    assert hosts.refresh(NOTHING) == ()
    (tmp_path / "pool.yml").write_text("engine: slurm\nslurm: {folder: /shared/r, partition: gpu}\n")
    (after,) = hosts.refresh(NOTHING)
    assert after is not before


def test_what_was_accepted_for_containers_never_runs_on_a_cluster(tmp_path: Path) -> None:
    hosts = make_hosts(tmp_path)
    record_executor(tmp_path, "docker")
    with pytest.raises(UsageError, match="accepted for containers"):
        hosts.open_hosts(WAITING)
    record_executor(tmp_path, "slurm")
    hosts.open_hosts(WAITING)


def test_a_user_who_has_chosen_containers_gets_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="chooses a Slurm cluster"):
        make_hosts(tmp_path, "docker").open_hosts(NOTHING)
