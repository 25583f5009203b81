"""What a submission may name as data, before anything is fetched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import EngineError, Refused, RisemlError
from riseml.base.names import HostName
from riseml.base.settings import Settings
from riseml.executors.base import ignore_report
from riseml.executors.capabilities import Capabilities
from riseml.executors.pool import HostPool
from riseml.model import Capacity, Plan, World
from riseml.server.data.data_fetcher import DataFetcher
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.mode import PoolMode
from riseml.spec.config.types import DataSource
from riseml.spec.pool.types import CacheSpec, PoolSpec, Volume
from tests.support.memory_executor import MemoryExecutor
from tests.unit.control.simulation import change_policy, make_experiment, make_plan


class Hosts(HostSet):
    """The hosts of a pool.yml that was read; they are on this machine unless `far` names them."""

    far: frozenset[HostName] = frozenset()
    spec = PoolSpec(())

    @property
    def mode(self) -> PoolMode:
        return PoolMode(self.spec)

    def is_this_machine(self, host: HostName) -> bool:
        return host not in self.far


class WithoutCopies(MemoryExecutor):
    """A host that holds no copies of data."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, data=None)


def make_fetcher(folder: Path) -> tuple[DataFetcher, Hosts]:
    executors = tuple(MemoryExecutor(HostName(name), Capacity(4.0, 4096)) for name in ("h1", "h2"))
    settings = Settings(folder, folder / "output", folder / "data")
    hosts = Hosts(settings, "5e17e4", HostPool(executors, 2.0, lambda *_: None))
    return DataFetcher("5e17e4", hosts), hosts


def name_data(*urls: str, store: str = "") -> Plan:
    sources = tuple(DataSource(url, f"d{place}") for place, url in enumerate(urls))
    return change_policy(make_plan("train"), data=sources, store=store)


def refusal(fetcher: DataFetcher, *urls: str) -> RisemlError:
    with pytest.raises(RisemlError) as raised:
        fetcher.check_plans([name_data(*urls)])
    return raised.value


def allow(folder: Path, *urls: str) -> None:
    (folder / "stores.yml").write_text(json.dumps({"stores": [{"name": "lab", "urls": list(urls)}]}))
    (folder / "stores.yml").chmod(0o600)


def test_what_no_store_allows_is_refused_with_what_to_write(tmp_path: Path) -> None:
    fetcher, _ = make_fetcher(tmp_path)
    error = refusal(fetcher, "http://169.254.169.254/latest/meta-data")
    assert isinstance(error, Refused)
    assert "urls: [http://169.254.169.254/latest/meta-data]" in str(error.hint)
    allow(tmp_path, "s3://datasets")
    fetcher.check_plans([name_data("s3://datasets/mnist"), name_data()])
    assert "no store" in refusal(fetcher, "s3://datasets/mnist", "s3://other/x").message


def test_a_host_that_does_not_see_the_cache_is_named(tmp_path: Path) -> None:
    fetcher, hosts = make_fetcher(tmp_path)
    allow(tmp_path, "s3://datasets")
    hosts.far = frozenset({HostName("h2")})
    fetcher.check_plans([name_data("s3://datasets/mnist")])  # an engine gets a copy
    hosts.pool.replace_executors((WithoutCopies(HostName("h2"), Capacity(4.0, 4096)),))
    error = refusal(fetcher, "s3://datasets/mnist")
    assert error.message.startswith("train.data: the host h2 is another machine")
    fetcher.check_plans([name_data("data://mnist")])
    hosts.spec = PoolSpec((), data_cache=CacheSpec(folder=str(tmp_path / "shared")))
    fetcher.check_plans([name_data("s3://datasets/mnist")])


def test_a_part_of_a_volume_is_refused(tmp_path: Path) -> None:
    fetcher, hosts = make_fetcher(tmp_path)
    hosts.spec = PoolSpec((), data=Volume("riseml-data"))
    assert "is in a volume" in refusal(fetcher, "data://mnist").message


def test_a_folder_of_the_data_folder_is_read_in_its_place_and_no_link_leads_out(tmp_path: Path) -> None:
    fetcher, _ = make_fetcher(tmp_path)
    (tmp_path / "data" / "mnist").mkdir(parents=True)
    (tmp_path / "data" / "out").symlink_to("/etc")
    experiment = make_experiment(1, name_data("data://mnist"))
    assert fetcher.find_fetched(World((experiment,))) == frozenset()
    fetcher.fetch_data(experiment, ignore_report)
    assert fetcher.find_fetched(World((experiment,))) == {1}
    view = fetcher.find_view(experiment, HostName("h1"))
    assert view is not None
    assert view.parts == (("d0", str(tmp_path / "data" / "mnist")),)
    for url in ("data://out", "data://none"):
        with pytest.raises(EngineError, match=f"there is no folder {url}"):
            fetcher.fetch_data(make_experiment(2, name_data(url)), ignore_report)
    assert fetcher.find_fetched(World(())) == frozenset()
    with pytest.raises(EngineError, match="gone from the cache"):
        fetcher.find_view(experiment, HostName("h1"))
