"""A gang over two hosts."""

from __future__ import annotations

import pytest

from riseml.spec.config.types import Retry
from tests.unit.control.pools import GANG, site
from tests.unit.control.simulation import Simulation, make_experiment, make_plan, make_pool


@pytest.fixture
def spread() -> Simulation:
    """A gang over two hosts of a swarm, about to start."""
    simulation = make_pool(h1=site(3), h2=site(3, manager=False))
    plan = make_plan(*GANG, resources=GANG, retry=Retry(max=1))
    simulation.submit(make_experiment(1, plan))
    return simulation
