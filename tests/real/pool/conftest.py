"""A server whose pool are three real engines on a LAN of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import docker
import pytest

from riseml.executors.docker.labels import EXPERIMENT, JOB
from tests.real.pool.engines import EngineHost, engine_hosts
from tests.support.hosts import Engine, remove_left
from tests.support.kernel import explain_missing_encryption
from tests.support.rig import BASE, Rig

NewEnvironments = Callable[[], dict[str, set[str]]]


class Pool:
    """Several engines as the host of a rig."""

    name = ""
    contained = True

    def __init__(self, hosts: tuple[EngineHost, ...]) -> None:
        self.environment = {"RISEML_EXECUTOR": "docker", "RISEML_BUILD_NETWORK": "host"}
        self.engines = {host.name: Engine(host.socket) for host in hosts}

    def jobs(self, server: str, *, running: bool = False) -> list[str]:
        return [job for engine in self.engines.values() for job in engine.jobs(server, running=running)]

    def shared(self, server: str) -> list[str]:
        return sorted({name for engine in self.engines.values() for name in engine.shared(server)})

    def helpers(self, server: str) -> list[str]:
        return [name for engine in self.engines.values() for name in engine.helpers(server)]

    def remove(self, server: str, job: str) -> None:
        self._host_of(server, job).remove(server, job)

    def wait_end(self, server: str, job: str) -> None:
        self._host_of(server, job).wait_end(server, job)

    def clean_up(self, server: str) -> None:
        remove_left(list(self.engines.values()), server)

    def close(self) -> None:
        for engine in self.engines.values():
            engine.close()

    def _host_of(self, server: str, job: str) -> Engine:
        (found,) = [engine for engine in self.engines.values() if job in engine.jobs(server)]
        return found


class PoolRig(Rig):
    """A rig with a pool.yml."""

    def __init__(self, home: Path, hosts: tuple[EngineHost, ...], shared: Path, **environment: str) -> None:
        super().__init__(home, None, **environment)
        self.host = Pool(hosts)
        self.hosts = hosts
        self.shared_folder = shared
        self.write_pool()

    def write_pool(self, *names: str, hosts: Mapping[str, Mapping[str, Any]] | None = None, **keys: Any) -> None:
        """Write pool.yml with these hosts (all, if none is named), `hosts` saying more of some."""
        common = {"insecure": True, "cpus": 2, "mem": "4GiB"}
        rows = [
            {"name": host.name, "url": host.url, **common, **(hosts or {}).get(host.name, {})}
            for host in self.hosts
            if not names or host.name in names
        ]
        storage = {"output": str(self.shared_folder / "output"), "data": str(self.shared_folder / "data")}
        encrypted = False if explain_missing_encryption() is not None else None  # as a kernel without ESP needs it
        values = {"hosts": rows, "storage": storage, "encrypted": encrypted, **keys}
        text = json.dumps({key: value for key, value in values.items() if value is not None})
        fresh = self.home / "pool.new"
        fresh.write_text(text)
        fresh.replace(self.home / "pool.yml")

    def check_nothing_left(self) -> None:
        """Check that no container is left, and no network but those that an engine cannot let go: `pool check` names
        these.
        """
        assert self.containers() == []
        self.wait("its helpers are gone", lambda: self.host.helpers(self.server_id()) == [])
        if self.networks():
            found = self.post("/v1/pool/check").json()["findings"]
            named = [one["message"] for one in found if one["topic"] == "networks"]
            left = self.networks()
            assert all(any(name in text for text in named) for name in left), (left, found)

    def where(self, *, running: bool = False) -> dict[str, str]:
        """The host of each container that this server has, by its number and job: `1.master`."""
        assert isinstance(self.host, Pool)
        found: dict[str, str] = {}
        for name, engine in self.host.engines.items():
            for row in engine.rows(self.server_id(), running=running):
                labels = row["Labels"]
                if JOB in labels:
                    found[f"{labels[EXPERIMENT]}.{labels[JOB]}"] = name
        return found

    def wait_up(self, *names: str) -> None:
        """Wait until the server has observed these hosts, in a swarm if there is one."""

        def look() -> bool:
            hosts = {host["name"]: host for host in self.get("/v1/pool")["hosts"]}
            return all(hosts[name]["state"] == "up" for name in names or hosts)

        self.wait("the hosts answer", look)


@pytest.fixture(scope="session")
def engines(engine_url: str) -> Iterator[tuple[EngineHost, ...]]:
    """h1, h2 and h3. Only h1 has the tests' image: the others are to get it from there."""
    with engine_hosts(3) as hosts:
        if not hosts[0].api.images(BASE):
            with docker.APIClient(base_url=engine_url, version="auto", timeout=300) as api:
                hosts[0].api.load_image(api.get_image(BASE))
        yield hosts


@pytest.fixture
def pool_rig(tmp_path: Path, engines: tuple[EngineHost, ...]) -> Iterator[PoolRig]:
    """A server with these three hosts, which share a folder of this machine."""
    shared = tmp_path / "shared"
    for name in ("output", "data"):
        (shared / name).mkdir(parents=True)
    with PoolRig(tmp_path / "home", engines, shared) as rig:
        rig.wait_up()
        yield rig
        rig.clean_up()


@pytest.fixture
def new_environments(engines: tuple[EngineHost, ...]) -> Iterator[NewEnvironments]:
    """What environments a test has made or brought so far, by the host; those without any are left out. They are
    removed afterwards, and older ones stay: to bring TensorFlow's to another host again takes a minute.
    """
    old = {host.name: _list_environments(host) for host in engines}

    def find() -> dict[str, set[str]]:
        found = {host.name: _list_environments(host) - old[host.name] for host in engines}
        return {name: tags for name, tags in found.items() if tags}

    yield find
    made = find()
    for host in engines:
        for tag in made.get(host.name, ()):
            host.api.remove_image(tag, force=True)


def list_tags(api: docker.APIClient) -> set[str]:
    """Return the tags of all images that an engine has."""
    return {tag for image in api.images() for tag in image["RepoTags"] or []}


def _list_environments(host: EngineHost) -> set[str]:
    return {tag for tag in list_tags(host.api) if tag.startswith("riseml/environment:")}
