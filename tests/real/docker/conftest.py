"""Builds of environments on the engine of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.engine_builds import EngineBuilds


@pytest.fixture
def builds(engine_url: str) -> Iterator[EngineBuilds]:
    """Give builds of a new server; remove what they made afterwards."""
    made = EngineBuilds(engine_url)
    yield made
    made.clean_up()
