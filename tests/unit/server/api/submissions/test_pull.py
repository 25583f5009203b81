"""`train --pull`: the tags of all images are resolved before the experiment is accepted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import Refused
from riseml.base.secrets import RegistryCredential
from riseml.executors.capabilities import Capabilities
from riseml.model import Capacity, Image
from riseml.server.api.submissions.pull import pull_images
from riseml.server.api.submissions.submit import Planned
from riseml.spec.config.loader import load_config
from tests.support.memory_executor import MemoryExecutor
from tests.unit.control.simulation import make_plan
from tests.unit.server.memory_pool import H1, make_host, make_hosts

CREDENTIALS = {"other": RegistryCredential("me", "password")}
SPEC = load_config("project: x\ntrain: {image: base, run: b}\n")


class WithRegistry(MemoryExecutor):
    """A host whose registry has every image, and counts the questions."""

    asked: tuple[tuple[str, RegistryCredential | None], ...] = ()

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, registries=self)

    def resolve_in_registry(self, base: str, credential: RegistryCredential | None = None) -> str:
        self.asked += ((base, credential),)
        return f"{base}@sha256:1"

    def check_registry(self, digest: str, credential: RegistryCredential | None = None) -> None:
        """Accept every digest."""


def test_each_image_is_resolved_once_and_made_anew(tmp_path: Path) -> None:
    plan = replace(make_plan("master", "worker.1"), role_images=(("worker", Image("other")),))
    host = WithRegistry(H1, Capacity(1, 1))
    pulled = pull_images(Planned(SPEC, (plan, plan)), make_hosts(tmp_path, host), lambda base: CREDENTIALS.get(base))
    assert host.asked == (("base", None), ("other", CREDENTIALS["other"]))
    assert pulled.resolved == (("base", "base@sha256:1"), ("other", "other@sha256:1"))
    assert all(image.refresh for pulled_plan in pulled.plans for image in pulled_plan.images)


def test_processes_have_no_images_to_pull(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="here jobs run as processes"):
        pull_images(Planned(SPEC, (make_plan("train"),)), make_hosts(tmp_path, make_host()), lambda _: None)
