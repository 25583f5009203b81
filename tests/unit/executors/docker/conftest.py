"""The helpers of a server on an engine that answers from memory."""

from __future__ import annotations

import pytest

from riseml.executors.docker.helpers import HelperRegistry, Helpers
from tests.unit.executors.docker.held_containers import SERVER, FakeEngine, HeldContainers, HelperSite


@pytest.fixture
def place() -> HelperSite:
    api = HeldContainers()
    return HelperSite(api, Helpers(FakeEngine(api), SERVER, HelperRegistry()))
