"""The hosts in force: a changed pool.yml, hosts that have left the pool, and a Slurm cluster in place of them."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from riseml.base.errors import Refused, Unreachable, UsageError
from riseml.base.names import THIS_MACHINE, HostName
from riseml.base.settings import ExecutorName, Settings
from riseml.base.states import Network
from riseml.executors.pool import HostPool
from riseml.executors.slurm.executor import SlurmExecutor
from riseml.model import Capacity, World
from riseml.planning.launch import LaunchTarget, StorageRoots
from riseml.server.hosts.choose_executor import check_executor
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.mode import record_executor
from riseml.spec.pool.loader import load_pool
from riseml.spec.pool.types import SLURM_CLUSTER, PoolSpec
from tests.support.memory_executor import MemoryExecutor
from tests.unit.control.simulation import make_experiment, make_plan

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


def make_hosts_without_pool(home: Path, executor: ExecutorName | None) -> HostSet:
    """Return the hosts of a home without a pool.yml."""
    settings = Settings(home, home / "output", home / "data", executor=executor)
    return HostSet(settings, "5e17e4", HostPool((), 2.0, lambda *_: None))


def test_a_user_without_a_pool_file_chooses_the_cluster_and_open_experiments_stay_on_it(tmp_path: Path) -> None:
    hosts = make_hosts_without_pool(tmp_path, "slurm")
    hosts.open_hosts(NOTHING)
    assert (hosts.names, hosts.executor_name) == ((SLURM_CLUSTER,), "slurm")
    assert hosts.find_target(SLURM_CLUSTER).roots.output == str(tmp_path / "output")
    (cluster,) = hosts.pool.executors.values()
    assert isinstance(cluster, SlurmExecutor)
    assert cluster.settings.folder == str(tmp_path / "slurm")
    (tmp_path / "slurm").mkdir()
    later = make_hosts_without_pool(tmp_path, None)
    later.open_hosts(WAITING)
    assert later.executor_name == "slurm"


def test_the_choice_of_the_cluster_passes_docker_hosts_by_and_keeps_a_pool_file_with_a_cluster(tmp_path: Path) -> None:
    hosts = make_hosts(tmp_path, "slurm")
    hosts.open_hosts(NOTHING)
    assert hosts.find_target(SLURM_CLUSTER).roots.output == "/shared/r/output"
    (tmp_path / "pool.yml").write_text("hosts: [{name: a, url: 'unix:///nowhere.sock'}]\n")
    other = make_hosts_without_pool(tmp_path, "slurm")
    other.open_hosts(NOTHING)
    assert other.names == (SLURM_CLUSTER,)


def test_the_cluster_is_not_chosen_where_slurm_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data", executor="slurm")
    with pytest.raises(Unreachable, match="sinfo is not on this machine"):
        check_executor(settings)


@pytest.mark.parametrize(
    ("pool", "executor", "what"),
    [
        ("", None, "there is no pool.yml"),
        ("hosts:\n- {name: gpu1, url: 'unix:///var/run/docker.sock'}\n", None, "pool.yml has gpu1 at a socket"),
        ("hosts:\n- {name: gpu1, url: 'ssh://root@gpu1'}\n", "process", "RISEML_EXECUTOR is process"),
        ("hosts:\n- {name: gpu1, url: 'ssh://root@gpu1'}\n", None, ""),
    ],
)
def test_a_server_whose_home_machines_share_gives_no_jobs_to_its_own_machine(
    tmp_path: Path, pool: str, executor: ExecutorName | None, what: str
) -> None:
    own = tmp_path / "own"
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data", executor=executor, local=own)
    if pool:
        settings.pool_file.write_text(pool)
    hosts = HostSet(settings, "5e17e4", HostPool((), 2.0, lambda *_: None))
    with closing(hosts), pytest.raises(Refused) if what else nullcontext() as raised:
        hosts.open_hosts(World(()))
    if raised is not None:
        assert raised.value.message.startswith(f"RISEML_LOCAL is set, and {what}")
