"""Failed attempts to log in, counted by the address from which they come."""

from __future__ import annotations

import ipaddress
import time
from collections import deque
from collections.abc import Callable

MOST_FAILURES = 10
"""How many attempts of one address may fail within `WINDOW`."""

WINDOW = 60.0
"""Seconds."""

_MOST_ADDRESSES = 10_000  # the one that has failed first is forgotten first
_NETWORK_BITS = {4: 32, 6: 64}  # who has an IPv6 address has 2**64 of them


class FailedAttempts:
    """Counts the failures of each address. The caller holds a lock.

    Args:
        clock: seconds, from any beginning.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[str, deque[float]] = {}

    def find_wait(self, network: str) -> float | None:
        """Return the seconds until a network may try again; None: it may try now."""
        moments = self._failures.get(network)
        if moments is None or len(moments) < MOST_FAILURES:
            return None
        wait = moments[0] + WINDOW - self._clock()
        return wait if wait > 0 else None

    def note_failure(self, network: str) -> None:
        """Count a failure of a network."""
        moments = self._failures.pop(network, deque(maxlen=MOST_FAILURES))  # again at the end: it failed last
        moments.append(self._clock())
        self._failures[network] = moments
        if len(self._failures) > _MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]


def find_network(address: str) -> str:
    """Return what one client controls as a whole: an IPv4 address, the first half of an IPv6 address, all of loopback.

    Example:
        >>> find_network("::ffff:192.0.2.7"), find_network("2001:db8::7"), find_network("127.0.0.9")
        ('192.0.2.7/32', '2001:db8::/64', 'loopback')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if parsed.is_loopback:
        return "loopback"
    return str(ipaddress.ip_network((parsed, _NETWORK_BITS[parsed.version]), strict=False))
