"""What a host says of an environment before it makes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from riseml.executors.capabilities import Capabilities
from riseml.model import Capacity, Image
from riseml.server.hosts.environment_review import review_environment
from tests.support.memory_executor import MemoryExecutor
from tests.unit.server.memory_pool import H1, H2, make_host, make_hosts


class WithoutReview(MemoryExecutor):
    """A host that takes every image as it is."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, reviewer=None)


def test_the_first_host_that_can_reviews_the_environment(tmp_path: Path) -> None:
    host = make_host(H2)
    host.faults.refused_environment = "apt needs root"
    hosts = make_hosts(tmp_path, WithoutReview(H1, Capacity(1, 1)), host)
    assert review_environment(hosts, Image("a")).refusal == "apt needs root"


def test_nothing_is_refused_where_no_host_reviews(tmp_path: Path) -> None:
    hosts = make_hosts(tmp_path, WithoutReview(H1, Capacity(1, 1)))
    assert review_environment(hosts, Image("a")).refusal == ""
