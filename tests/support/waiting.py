"""Waiting in tests: for something to become true, with a deadline, never for a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

DEADLINE = 120
"""Seconds that a test waits for what has to happen. It never comes to this where the code is right: several tests share
two cores, and the machine may be busy with something else."""
_BETWEEN = 0.05  # seconds between two looks

Found = TypeVar("Found")


def wait_for(what: str, look: Callable[[], Found | None], deadline: float, words: Callable[[], str] = str) -> Found:
    """What `look` says, once that is true.

    Raises:
        AssertionError: it did not become so within `deadline` seconds; with the last words of whom it concerns.
    """
    end = time.monotonic() + deadline
    pause = threading.Event()
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        pause.wait(_BETWEEN)
    raise AssertionError(f"in vain waited until {what}\n{words()}")
