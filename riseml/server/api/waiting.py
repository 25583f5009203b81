"""Wait for fresh data: until the loop has observed the hosts, or has read pool.yml."""

from __future__ import annotations

from riseml.server.services import Services

_DEADLINE = 10.0  # seconds that an answer waits for the loop; then it uses the last observation


def wait_for_hosts(services: Services) -> None:
    """Return once the loop has asked every host after this call, or after a deadline. An idle loop asks rarely."""
    services.passes.wait_for_full_pass(_DEADLINE)


def wait_for_pool_file(services: Services) -> None:
    """Return once pool.yml is in force as it is now on disk, or after a deadline."""
    if services.hosts.is_outdated():
        services.passes.wait_for_full_pass(_DEADLINE)
