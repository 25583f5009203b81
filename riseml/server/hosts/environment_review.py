"""Review an environment before a build: ask the first host that can."""

from __future__ import annotations

from riseml.executors.capabilities import EnvironmentReview
from riseml.model import Image
from riseml.server.hosts.host_set import HostSet


def review_environment(hosts: HostSet, image: Image) -> EnvironmentReview:
    """Return what jobs get in place of an image, and why its steps are refused; both empty on Docker, which uses the
    image."""
    for _, executor in sorted(hosts.pool.executors.items()):
        if executor.capabilities.reviewer is not None:
            return executor.capabilities.reviewer.review_environment(image)
    return EnvironmentReview("")
