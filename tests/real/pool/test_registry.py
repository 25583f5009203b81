"""Environments by way of a registry: a real one on loopback, where an engine needs no certificate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
import requests

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.executors.base import BuildRequest, Cancellation, Work, WorkReport
from riseml.executors.docker.executor import DockerExecutor
from riseml.executors.docker.image_transfer import EngineImages
from riseml.executors.transports.engine_client import Engine
from riseml.model import Image
from riseml.spec.pool.types import HostSpec
from tests.support.registry import running_registry, write_dockerfile
from tests.support.waiting import DEADLINE


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """The address of a registry of this test's own."""
    with running_registry(tmp_path) as address:
        yield address


def test_what_one_host_publishes_another_fetches(registry: str, engine_url: str, tmp_path: Path) -> None:
    """Also when the tag moves in the registry between the two."""
    reference = f"riseml/environment:{tmp_path.stat().st_ino}"
    images = EngineImages(Engine(engine_url))
    with docker.APIClient(base_url=engine_url, version="auto", timeout=DEADLINE) as api:
        tag = reference.rpartition(":")[2]
        for line in api.build(fileobj=write_dockerfile(f"LABEL test={tag}"), tag=reference, rm=True, decode=True):
            assert "error" not in line, line
        wanted = api.inspect_image(reference)["Id"]
        try:
            pushed: list[WorkReport] = []
            published = images.publish_image(reference, registry, pushed.append)
            assert (pushed[-1].work, pushed[-1].progress) == (Work.SEND, pushed[-1].total)
            assert images.measure_image(reference) == api.inspect_image(reference)["Size"]
            _move_tag(api, f"{registry}/environment", tag)
            _remove_image(engine_url, reference)
            _remove_image(engine_url, f"{registry}/environment:{tag}")
            images.fetch_image(reference, published)
            assert api.inspect_image(reference)["Id"] == wanted
        finally:
            for image in api.images():
                for tag in image["RepoTags"] or []:
                    if tag == reference or tag.startswith(registry):
                        api.remove_image(tag)


def _remove_image(engine_url: str, name: str) -> None:
    """Remove an image. Seen on a busy Engine 20.10: a removal has no answer until its client has gone."""
    for _ in range(5):
        with docker.APIClient(base_url=engine_url, version="auto", timeout=60) as api:
            try:
                api.remove_image(name)
            except requests.exceptions.ReadTimeout:
                continue
            except docker.errors.ImageNotFound:  # the removal before this one, which had no answer
                return
            return
    raise AssertionError(f"the engine does not remove {name}")


def test_a_pull_tells_how_many_bytes_of_how_many_are_there(registry: str, engine_url: str, tmp_path: Path) -> None:
    executor = DockerExecutor(HostSpec(HostName("here"), engine_url), "5e7a" * 8, Engine(engine_url))
    name = f"{registry}/pulled:1"
    with docker.APIClient(base_url=engine_url, version="auto", timeout=DEADLINE) as api:
        made = write_dockerfile(f"RUN head -c 3000000 /dev/urandom > /{tmp_path.name}")
        for line in api.build(fileobj=made, tag=name, rm=True, decode=True):
            assert "error" not in line, line
        for line in api.push(name, stream=True, decode=True):
            assert "error" not in line, line
        api.remove_image(name)
        reports: list[WorkReport] = []
        try:
            executor.ensure_image(BuildRequest(Image(name), None, print, Cancellation(), reports.append))
        finally:
            api.remove_image(name)
    last = reports[-1]
    assert (last.work, last.subject) == (Work.PULL, name)
    assert last.progress == last.total
    assert last.progress >= 3_000_000
    assert [report.progress for report in reports] == sorted(report.progress for report in reports)


def test_a_registry_that_is_not_there_is_named(engine_url: str) -> None:
    images = EngineImages(Engine(engine_url))
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:9"):
        images.fetch_image("riseml/environment:none", f"127.0.0.1:9/lab/environment@sha256:{'0' * 64}")


def _move_tag(api: docker.APIClient, repository: str, tag: str) -> None:
    """Push another image under a tag of the registry."""
    other = write_dockerfile("RUN echo mallory > /who")
    for line in api.build(fileobj=other, tag=f"{repository}:{tag}", rm=True, decode=True):
        assert "error" not in line, line
    for line in api.push(repository, tag, stream=True, decode=True):
        assert "error" not in line, line
