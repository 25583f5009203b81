"""The digest of a tag, from the registry, through the first host that answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import EngineError, Refused, Unreachable
from riseml.base.names import HostName
from riseml.base.secrets import RegistryCredential
from riseml.executors.capabilities import Capabilities
from riseml.model import Capacity
from riseml.server.clock import now
from riseml.server.hosts.ask_registry import ask_registry
from tests.support.memory_executor import MemoryExecutor
from tests.unit.server.memory_pool import H1, H2, make_host, make_hosts


class WithRegistry(MemoryExecutor):
    """A host that asks a registry, and gets an answer or an error."""

    def __init__(self, name: HostName, answer: str | Exception) -> None:
        super().__init__(name, Capacity(1, 1))
        self.answer = answer

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, registries=self)

    def resolve_in_registry(self, base: str, credential: RegistryCredential | None = None) -> str:
        if isinstance(self.answer, Exception):
            raise self.answer
        return f"{base}@{self.answer}"

    def check_registry(self, digest: str, credential: RegistryCredential | None = None) -> None:
        """Accept every digest."""


def test_a_host_that_is_silent_is_not_asked_and_another_one_answers(tmp_path: Path) -> None:
    silent = WithRegistry(H1, AssertionError("it was asked"))
    hosts = make_hosts(tmp_path, silent, WithRegistry(H2, "sha256:1"))
    silent.faults.silent = True
    hosts.pool.observe_hosts(frozenset(), now())
    assert ask_registry(hosts, "python") == "python@sha256:1"


def test_a_host_that_does_not_answer_now_is_passed_by(tmp_path: Path) -> None:
    away = WithRegistry(H1, Unreachable("h1 is away", None))
    assert ask_registry(make_hosts(tmp_path, away, WithRegistry(H2, "sha256:1")), "a") == "a@sha256:1"
    with pytest.raises(Unreachable, match="h1 is away"):
        ask_registry(make_hosts(tmp_path, away), "a")


def test_the_refusal_of_the_registry_is_the_answer(tmp_path: Path) -> None:
    hosts = make_hosts(tmp_path, WithRegistry(H1, EngineError("manifest unknown")), WithRegistry(H2, "sha256:1"))
    with pytest.raises(Refused, match="manifest unknown"):
        ask_registry(hosts, "a")


def test_hosts_without_images_have_no_registry(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="here jobs run as processes"):
        ask_registry(make_hosts(tmp_path, make_host()), "a")
