"""Free ports for servers that open their port a moment after it was chosen."""

from __future__ import annotations

import random
import socket

_RANGE = range(10_000, 19_000)  # outside the kernel's range for outgoing connections, and outside riseml's for jobs


def find_free_port() -> int:
    """Return a free port of the loopback interface that no other program gets by chance before it is opened."""
    candidates = random.SystemRandom().sample(_RANGE, len(_RANGE))  # two test runs start at different ports
    return next(port for port in candidates if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
