"""The parts of an earlier run that no host can have any more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from riseml.base.errors import EngineError
from riseml.base.names import HostName
from riseml.base.secrets import RegistryCredential
from riseml.base.settings import Settings
from riseml.executors.capabilities import Capabilities
from riseml.executors.pool import HostPool
from riseml.model import Capacity
from riseml.server.hosts.host_set import HostSet
from riseml.server.hosts.missing_parts import find_missing_data, find_missing_image
from tests.support.memory_executor import MemoryExecutor

IMAGE_ID, DIGEST = "sha256:" + "a" * 64, "python@sha256:" + "b" * 64


class WithRegistry(MemoryExecutor):
    """A host that reaches a registry with one image."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, registries=self)

    def resolve_in_registry(self, base: str, credential: RegistryCredential | None = None) -> str:
        return base

    def check_registry(self, digest: str, credential: RegistryCredential | None = None) -> None:
        if digest != DIGEST:
            raise EngineError("its registry does not give it: manifest unknown", permanent=True)


HERE = PurePosixPath()


@pytest.fixture
def hosts(tmp_path: Path) -> HostSet:
    pool = HostPool((WithRegistry(HostName("h1"), Capacity(1, 1)),), 2.0, lambda *_: None)
    return HostSet(Settings(tmp_path, tmp_path / "output", tmp_path / "data"), "5e17", pool)


def test_an_image_is_missing_when_no_host_and_no_registry_has_it(hosts: HostSet) -> None:
    assert find_missing_image(hosts, "python:3.11", DIGEST) == ""
    other = DIGEST.replace("b", "c")
    assert "manifest unknown" in find_missing_image(hosts, "python:3.11", other)
    assert "which no host has" in find_missing_image(hosts, "mine", IMAGE_ID)
    executor = hosts.pool.executors[HostName("h1")]
    assert isinstance(executor, MemoryExecutor)
    executor.images |= {IMAGE_ID, other}
    assert find_missing_image(hosts, "mine", IMAGE_ID) == find_missing_image(hosts, "python:3.11", other) == ""


def test_the_first_names_that_the_data_folder_lacks_are_listed(hosts: HostSet, tmp_path: Path) -> None:
    (tmp_path / "data" / "digits").mkdir(parents=True)
    assert find_missing_data(hosts, ["digits"], HERE) == ""
    assert find_missing_data(hosts, ["digits", "b", "../a"], HERE).endswith("lacks b")
    assert find_missing_data(hosts, list("abcdefgh"), HERE).endswith("lacks a, b, c, d, e and 3 more")
    assert find_missing_data(hosts, ["digits"], PurePosixPath("users/paul")).endswith("data/users/paul lacks digits")


@pytest.mark.parametrize("name", ["x" * 300, ".", ".."])
def test_what_cannot_be_a_name_of_an_entry_is_missing(hosts: HostSet, tmp_path: Path, name: str) -> None:
    (tmp_path / "data").mkdir()
    assert find_missing_data(hosts, [name], HERE).endswith(f"lacks {name}")
