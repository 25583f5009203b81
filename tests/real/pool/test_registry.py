"""Environments by way of a registry: a real one on loopback, where an engine needs no certificate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from riseml.errors import EngineError
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.transports.engine_client import Engine
from riseml.names import HostName
from riseml.spec.pool.types import HostSpec
from tests.support.registry import running_registry
from tests.support.rig import BASE


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """The address of a registry of this test's own."""
    with running_registry(tmp_path) as address:
        yield address


def test_what_one_host_publishes_another_fetches(registry: str, engine_url: str, tmp_path: Path) -> None:
    reference = f"riseml/environment:{tmp_path.stat().st_ino}"
    executor = DockerExecutor(HostSpec(HostName("here"), engine_url), "5e7a" * 8, Engine(engine_url), "default")
    with docker.APIClient(base_url=engine_url, version="auto", timeout=60) as api:
        repository, tag = reference.split(":")
        api.tag(BASE, repository, tag)
        wanted = api.inspect_image(reference)["Id"]
        try:
            executor.publish_image(reference, registry)
            api.remove_image(reference)
            api.remove_image(f"{registry}/environment:{reference.partition(':')[2]}")
            executor.fetch_image(reference, registry)
            assert api.inspect_image(reference)["Id"] == wanted
        finally:
            for image in api.images():
                for tag in image["RepoTags"] or []:
                    if tag == reference or tag.startswith(registry):
                        api.remove_image(tag)


def test_a_registry_that_is_not_there_is_named(engine_url: str) -> None:
    executor = DockerExecutor(HostSpec(HostName("here"), engine_url), "5e7a" * 8, Engine(engine_url), "default")
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:9/lab/environment:none cannot be fetched|127\.0\.0\.1:9"):
        executor.fetch_image("riseml/environment:none", "127.0.0.1:9/lab")
