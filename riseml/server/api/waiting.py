"""Wait for fresh data: until the loop has observed the hosts, or has read pool.yml."""

from __future__ import annotations

import time

from riseml.server.hosts.host_set import HostSet
from riseml.server.reconcile.passes import PassCounter
from riseml.server.services import Loops, Services

_DEADLINE = 10.0  # seconds that an answer waits for the loop; then it uses the last observation
_FIRST_ANSWER = 20.0  # seconds that a submission waits for the first answer of a host; a busy engine is asked for 10


def wait_for_hosts(loops: Loops) -> None:
    """Return once the loop has asked every host after this call, or after a deadline. An idle loop asks rarely."""
    loops.passes.wait_for_full_pass(_DEADLINE)


def wait_for_any_host(hosts: HostSet, passes: PassCounter) -> None:
    """Return once a host answers or it is known why none does, or after a deadline. A server that has just started may
    not have heard of a slow host yet.
    """
    end = time.monotonic() + _FIRST_ANSWER
    while not hosts.is_any_answering() and (left := end - time.monotonic()) > 0:
        passes.wait_for_full_pass(min(_DEADLINE, left))
        if hosts.find_troubles():
            return


def wait_for_pool_file(services: Services) -> None:
    """Return once pool.yml is in force as it is now on disk, or after a deadline."""
    if services.hosts.is_outdated():
        services.loops.passes.wait_for_full_pass(_DEADLINE)
