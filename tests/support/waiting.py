"""Wait in tests until something becomes true, with a deadline; never for a fixed time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

DEADLINE = 300
"""Seconds that a test waits for an event. Correct code needs far less; but several tests share two cores, the machine
may be busy with something else, and an engine that deletes a large image may not answer for a minute or two."""
_FIRST_PAUSE = 0.05  # seconds between the first two calls of `look`
_GROWTH = 1.2  # each pause is so much longer than the one before it
_LONGEST_PAUSE = 1.0  # seconds; a question to a server takes 10 ms of the processor time that the event needs, too

Found = TypeVar("Found")


def wait_for(what: str, look: Callable[[], Found | None], deadline: float, words: Callable[[], str] = str) -> Found:
    """Call `look` until it returns something true, and return that.

    Args:
        what: what the test waits for, for the message.
        look: returns something false while it has to be called again.
        deadline: seconds.
        words: returns details for the message, such as the end of a log.

    Raises:
        AssertionError: `look` returned nothing true within `deadline` seconds.
    """
    end = time.monotonic() + deadline
    never, pause = threading.Event(), _FIRST_PAUSE
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        never.wait(pause)
        pause = min(pause * _GROWTH, _LONGEST_PAUSE)
    raise AssertionError(f"waited {deadline:.0f} s, but it did not happen: {what}\n{words()}")
