"""Ports for servers that open theirs a moment after it was chosen."""

from __future__ import annotations

import random
import socket

_RANGE = range(10_000, 19_000)  # kernels give others to whoever asks for any port or connects; jobs get others, too


def free_port() -> int:
    """A port of the loopback interface that nobody uses now, and that nobody gets by chance before it is opened."""
    candidates = random.SystemRandom().sample(_RANGE, len(_RANGE))  # two runs on one machine begin at different ones
    return next(port for port in candidates if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
